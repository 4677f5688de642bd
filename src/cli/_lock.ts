/**
 * `pml lock`: shows pins and differences from them, and updates pins if the user agrees.
 *
 * @module
 */

import { forgetLists } from "./fresh_lists.ts";
import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { memberOf, quoted, visible } from "../core/json.ts";
import { INSTRUCTIONS } from "../protocol/lists.ts";
import { toolId } from "../core/tool_id.ts";
import { followedInfo } from "../io/place.ts";
import { unlessAborted } from "../io/waiting.ts";
import { isOwnPin } from "../policy/server_identity.ts";
import { unknownWords, usage } from "./_failure.ts";
import { type CommandContext, recordAction, type Shown, type Typed } from "./_command_context.ts";
import { isTyped, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

type PinsState = Awaited<ReturnType<Awaited<ReturnType<App["pins"]>>["state"]>>;
type PinnedServer = PinsState["lock"][string];
/** Something to approve: the lines to show, and the function that pins it. */
type ApprovalItem = Pick<
  NonNullable<Awaited<ReturnType<App["policy"]["unapproved"]>>>,
  "facts" | "accept"
>;

/** Shows the lock, checks it, or updates pins if the user agrees. */
export async function lock(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [word, server] } = typed;
  if (word === "update" && typed.check !== true) return await update(at, { server, ...typed });
  const isServer = word !== undefined && at.app.directory.isTaken(word);
  if (isServer && server === undefined) {
    throw usage(
      `Cannot run "pml lock ${word}": a server goes with update`,
      `Run \`pml lock update ${word}\`, or \`pml lock\` to see all`,
    );
  }
  if (word !== undefined) {
    throw unknownWords("lock", { ...typed, known: ["update"] });
  }
  return await (typed.check === true ? check(at) : show(at));
}

async function show({ app }: CommandContext): Promise<Shown> {
  const pins = await app.pins();
  const { lock, home } = await pins.state();
  const servers = Object.entries(lock).map(([name, entry]) => {
    const homeEntry = memberOf(home, name);
    return { name, ...entry, approved: JSON.stringify(homeEntry) === JSON.stringify(entry) };
  });
  const own = Object.entries(home).filter(([name]) => !Object.hasOwn(lock, name))
    .map(([name, entry]) => ({ name, ...entry, approved: true }));
  const texts = [
    ...servers.map(textOf),
    ...own.map((one) => `${textOf(one)}\n  only on this machine`),
  ];
  return {
    value: { path: pins.path, servers, local: own },
    text: texts.join("\n"),
    note: texts.length > 0 ? "" : "Nothing is pinned yet: the first call of a server pins it",
  };
}

function textOf(
  entry: PinnedServer & { readonly name: string; readonly approved: boolean },
): string {
  const { name, source, kind, version, integrity, command, url, tools, approved } = entry;
  const facts = { version, integrity, command: command && JSON.stringify(command), url };
  const lines = Object.entries({ ...facts, ...tools }).flatMap(([key, value]) =>
    value === undefined ? [] : [`  ${visible(key)}: ${visible(value, Infinity)}`]
  );
  const note = approved ? "" : ", not the version that was approved on this machine";
  return [`${name} (${visible(source)}, ${kind}${note})`, ...lines].join("\n");
}

/**
 * Compares the lock with the present servers. It asks no question and starts no server, so it can run
 * in CI.
 */
async function check({ app }: CommandContext): Promise<Shown> {
  const pins = await app.pins();
  const differences = await pins.differences(await app.identities());
  const ok = differences.length === 0;
  const exists = followedInfo(pins.path) !== undefined;
  const nothing = exists
    ? `Nothing differs from ${pins.path}`
    : `There is no ${pins.path} yet: the first call of a server writes it. Nothing was compared`;
  return {
    value: { path: pins.path, exists, ok, differences },
    text: ok ? nothing : differences.join("\n"),
    note: ok ? "" : "Check them; `pml lock update` then pins the present content",
    code: ok ? 0 : 1,
  };
}

/** Asks about each server that differs, one after the other: what gets no yes stays as it is. */
async function update(
  at: CommandContext,
  { server, json = false }: { readonly server: string | undefined; readonly json?: boolean },
): Promise<Shown> {
  const { app } = at;
  if (!json) needPerson("Cannot update the lock");
  const pins = await app.pins();
  await mustBeTrusted(app);
  const { lock, home } = await pins.state();
  const identities = (await app.identities()).map(({ name }) => name);
  const gone = Object.entries(lock).filter(([name, pin]) =>
    isOwnPin(pin) && !identities.includes(name)
  ).map(([name]) => name);
  const names = [...identities, ...gone].filter((name) => server === undefined || name === server);
  if (server !== undefined && names.length === 0) {
    throw usage(`Cannot find the server ${quoted(server)}`, "See all with `pml lock`");
  }
  // All in one request: each refresh asks the registries for everything that they offer.
  const isPinned = names.some((name) =>
    Object.hasOwn({ ...lock, ...home }, name) || pins.listedBy(name).length > 0
  );
  if (isPinned) await forgetLists(app, names.length === 1 ? names[0] : undefined);
  const facts: string[] = [];
  const done = { pinned: [] as string[], left: [] as string[] };
  for (const name of names) {
    const update = await updateServer(at, { name, isGone: gone.includes(name), json });
    facts.push(...update.facts);
    if (update.facts.length > 0) done[update.isAgreed ? "pinned" : "left"].push(name);
  }
  const value = json ? { facts } : { facts, ...done };
  if (facts.length === 0) return { value, text: "Nothing differs" };
  if (json) return { value };
  if (done.pinned.length > 0) {
    await recordAction(at, "lock updated", { servers: done.pinned, facts });
  }
  const lines = Object.entries({ Pinned: done.pinned, "Not pinned": done.left })
    .flatMap(([what, all]) => all.length === 0 ? [] : [`${what}: ${all.join(", ")}`]);
  return { value, text: lines.join("\n"), code: done.left.length === 0 ? 0 : 1 };
}

/** Shows the differences of one server, and updates its pins if the user agrees. */
async function updateServer(
  at: CommandContext,
  { name, isGone, json }: {
    readonly name: string;
    readonly isGone: boolean;
    readonly json: boolean;
  },
): Promise<{ readonly facts: readonly string[]; readonly isAgreed: boolean }> {
  const pins = await at.app.pins();
  const facts: string[] = [];
  const agreed = async (open: readonly ApprovalItem[]) => {
    const lines = open.flatMap((one) => one.facts);
    facts.push(...lines);
    if (json || lines.length === 0) return true;
    for (const line of lines) tell(line);
    const to = `pin exactly this of ${quoted(name)}; Enter leaves it out`;
    if (!await isTyped("pin", to, at.signal)) return false;
    for (const one of open) await one.accept();
    return true;
  };
  const identity = (await at.app.identities()).find((one) => one.name === name);
  const stale = identity && await pins.unapproved(identity, { isWanted: true });
  const isAgreed = await agreed(stale === undefined ? [] : [stale]) &&
    await agreed(await staleTools(at, name)) &&
    await agreed([await covered(at.app, { name, isGone })]);
  return { facts, isAgreed };
}

async function mustBeTrusted(app: App): Promise<void> {
  const open = await app.policy.unapproved();
  if (open === undefined) return;
  throw new PmlError(open.code, "Cannot update the lock: the workspace file is not trusted", {
    hint: "Look at it with `pml trust`",
  });
}

/**
 * Returns the differences that the trust in the files covers, and the servers that the files no
 * longer name.
 */
async function covered(
  app: App,
  { name, isGone }: { readonly name: string; readonly isGone: boolean },
): Promise<ApprovalItem> {
  const pins = await app.pins();
  await pins.settled();
  const identities = (await app.identities()).filter((identity) => identity.name === name);
  const facts = (await pins.differences(await app.identities()))
    .filter((line) => line.split(":", 1)[0] === name);
  const accept = async () => {
    await pins.renew(identities);
    if (isGone) await pins.remove([name]);
  };
  return { facts, accept };
}

/** Asks a server for the tools that are pinned, and returns those that changed. */
async function staleTools(
  { app, signal }: CommandContext,
  name: string,
): Promise<readonly ApprovalItem[]> {
  const pins = await app.pins();
  const { lock, home } = await pins.state();
  const pinned = [lock, home].filter((entries) => Object.hasOwn(entries, name));
  if (pinned.length === 0 && pins.listedBy(name).length === 0) return [];
  // A known list may be outdated. The server's state reports a failure.
  const { lists } = app.servers;
  const skills = lists.prepare("skills", { only: name, isWhole: true });
  await unlessAborted(Promise.all([lists.load(name), skills]).catch(() => {}), signal);
  // The version of a server may be known only after it was asked.
  const identity = (await app.identities()).find((one) => one.name === name);
  const items: ApprovalItem[] = [];
  // Tools that were listed and never called may have changed, too.
  const { changed = [] } = app.servers.states().find((state) => state.name === name) ?? {};
  const tools = new Set([
    ...pinned.flatMap((entries) => Object.keys(entries[name]?.tools ?? {})),
    ...changed,
  ]);
  for (const tool of tools) {
    const definition = tool === INSTRUCTIONS
      ? app.servers.saidBy(name)
      : app.servers.skillOf(name, tool) ?? app.catalog.get(toolId(name, tool))?.own;
    const stale = identity && definition && await pins.unapprovedTool(identity, definition);
    if (stale) items.push(stale);
  }
  return items;
}
