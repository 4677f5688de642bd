/**
 * `pml lock`: shows what is pinned and what differs from it, and pins it anew if the person agrees.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { unlessAborted } from "../io/waiting.ts";
import { unknownSubcommand, usage } from "./_failure.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { askWord, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

type State = Awaited<ReturnType<Awaited<ReturnType<App["pins"]>>["state"]>>;
type Entry = State["lock"][string];
/** Something to approve: the lines to show, and the function that pins it. */
type Open = Pick<NonNullable<Awaited<ReturnType<App["policy"]["unapproved"]>>>, "facts" | "accept">;

/** Shows the lock, checks it, or pins what the person agrees to. */
export async function lock(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [word, server] } = typed;
  if (word === "update" && typed.check !== true) return await update(at, { server, ...typed });
  if (word !== undefined) {
    throw unknownSubcommand("pml lock", { word, known: ["update"] });
  }
  return await (typed.check === true ? check(at) : show(at));
}

async function show({ app }: CommandContext): Promise<Shown> {
  const pins = await app.pins();
  const { lock, home } = await pins.state();
  const servers = Object.entries(lock).map(([name, entry]) => {
    const known = Object.hasOwn(home, name) ? home[name] : undefined;
    return { name, ...entry, approved: JSON.stringify(known) === JSON.stringify(entry) };
  });
  const own = Object.entries(home).filter(([name]) => !Object.hasOwn(lock, name))
    .map(([name, entry]) => ({ name, ...entry, approved: true }));
  const texts = [
    ...servers.map(textOf),
    ...own.map((one) => `${textOf(one)}\n  only on this machine`),
  ];
  return {
    value: { file: pins.path, servers, local: own },
    text: texts.join("\n"),
    note: texts.length > 0 ? "" : "Nothing is pinned yet: the first call of a server pins it",
  };
}

function textOf(entry: Entry & { readonly name: string; readonly approved: boolean }): string {
  const { name, source, kind, version, integrity, command, url, tools, approved } = entry;
  const facts = { version, integrity, command: command && JSON.stringify(command), url };
  const lines = Object.entries({ ...facts, ...tools }).flatMap(([key, value]) =>
    value === undefined ? [] : [`  ${visible(key)}: ${visible(value, Infinity)}`]
  );
  const said = approved ? "" : ", not what was approved on this machine";
  return [`${name} (${visible(source)}, ${kind}${said})`, ...lines].join("\n");
}

/**
 * Compares the lock with what is there. It asks no person and starts no server, so it can run in
 * CI.
 */
async function check({ app }: CommandContext): Promise<Shown> {
  const pins = await app.pins();
  const differences = await pins.differences(await app.identities());
  const ok = differences.length === 0;
  return {
    value: { file: pins.path, ok, differences },
    text: ok ? `Nothing differs from ${pins.path}` : differences.join("\n"),
    note: ok ? "" : "Check them; `pml lock update` then pins what is there now",
    code: ok ? 0 : 1,
  };
}

async function update(
  at: CommandContext,
  { server, json }: { readonly server: string | undefined; readonly json?: boolean },
): Promise<Shown> {
  const { app, signal } = at;
  if (json !== true) needPerson("Cannot update the lock", "pml lock update");
  const facts: string[] = [];
  const agreed = async (open: readonly Open[]) => {
    const lines = open.flatMap((one) => one.facts);
    facts.push(...lines);
    if (json === true || lines.length === 0) return true;
    for (const line of lines) tell(line);
    if (await askWord('Type "pin" and press Enter to pin exactly this', signal) !== "pin") {
      return false;
    }
    for (const one of open) await one.accept();
    return true;
  };
  const pins = await app.pins();
  await mustBeTrusted(app);
  const isMeant = (name: string) => server === undefined || server === name;
  const { lock } = await pins.state();
  const identities = await app.identities();
  const meant = identities.filter(({ name }) => isMeant(name));
  const gone = Object.entries(lock).filter(([name, { source }]) =>
    source === "private" && isMeant(name) && identities.every((identity) => identity.name !== name)
  ).map(([name]) => name);
  if (server !== undefined && meant.length + gone.length === 0) {
    throw usage(`Cannot find the server ${quoted(server)}`, "See all with `pml lock`");
  }
  const stale = await Promise.all(meant.map((identity) => pins.unapproved(identity)));
  const isAgreed = await agreed(stale.filter((one) => one !== undefined)) &&
    await agreed(await staleTools(at, isMeant)) &&
    await agreed([await covered(app, { isMeant, gone })]);
  const value = { facts };
  if (!isAgreed) return { value, text: "Not pinned: nothing more was changed", code: 1 };
  return { value, text: facts.length === 0 ? "Nothing differs" : "Pinned" };
}

async function mustBeTrusted(app: App): Promise<void> {
  const open = await app.policy.unapproved();
  if (open === undefined) return;
  throw new PmlError(open.code, "Cannot update the lock: the workspace file is not trusted", {
    hint: "Look at it with `pml trust` first",
  });
}

/**
 * Returns the differences that the trust in the files covers, and the servers that the files no
 * longer name.
 */
async function covered(
  app: App,
  { isMeant, gone }: {
    readonly isMeant: (name: string) => boolean;
    readonly gone: readonly string[];
  },
): Promise<Open> {
  const pins = await app.pins();
  await pins.settled();
  const identities = await app.identities();
  const facts = (await pins.differences(identities)).filter((line) =>
    isMeant(line.split(":", 1)[0] ?? "")
  );
  const accept = async () => {
    await pins.renew(identities.filter(({ name }) => isMeant(name)));
    await pins.remove(gone);
  };
  return { facts, accept };
}

/** Asks the servers for the tools that are pinned, and returns those that changed. */
async function staleTools(
  at: CommandContext,
  isMeant: (name: string) => boolean,
): Promise<readonly Open[]> {
  const { app } = at;
  const pins = await app.pins();
  const { lock, home } = await pins.state();
  const names = (await app.identities()).map(({ name }) => name)
    .filter((name) => isMeant(name) && (Object.hasOwn(lock, name) || Object.hasOwn(home, name)));
  const found: Open[] = [];
  // All in one request: each refresh asks the registries for everything that they offer.
  if (names.length > 0) await app.refresh(names.length === 1 ? names[0] : undefined);
  for (const name of names) {
    // A list that is known already may be from before. A failure is told by the server's state.
    await unlessAborted(app.servers.load(name).catch(() => {}), at.signal);
    // The version of a server may be known only after it was asked.
    const identity = (await app.identities()).find((one) => one.name === name);
    const tools = new Set(
      [lock, home].flatMap((entries) => Object.keys(entries[name]?.tools ?? {})),
    );
    for (const tool of tools) {
      const definition = app.catalog.get(toolId(name, tool))?.own;
      const stale = identity && definition && await pins.unapprovedTool(identity, definition);
      if (stale) found.push(stale);
    }
  }
  return found;
}
