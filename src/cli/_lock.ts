/**
 * `pml lock`: shows the pins, and what differs from them, and updates pins if the user agrees.
 *
 * @module
 */

import { forgetLists } from "./fresh_lists.ts";
import type { App } from "../app/app.ts";
import { PmlError } from "../core/errors.ts";
import { memberOf, quoted, visible } from "../core/json.ts";
import { INSTRUCTIONS } from "../protocol/lists.ts";
import { toolId } from "../core/tool_id.ts";
import { infoAfterLinks } from "../io/path_info.ts";
import { unlessAborted } from "../io/waiting.ts";
import { isOwnPin } from "../policy/server_identity.ts";
import { unknownNameError, unknownWords, usage } from "./_failure.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  recordAction,
} from "./_command_context.ts";
import { afterDone, assertTerminal, confirmWord } from "./_terminal.ts";
import { tell } from "./out.ts";

type PinsState = Awaited<ReturnType<Awaited<ReturnType<App["pins"]>>["state"]>>;
type PinnedServer = PinsState["lock"][string];
/** An item to approve: the lines to show, and the function that pins it. */
type ApprovalItem = Pick<
  NonNullable<Awaited<ReturnType<App["policy"]["findUnapproved"]>>>,
  "facts" | "accept"
>;

/** Shows the lock, checks it, or updates pins if the user agrees. */
export async function lock(context: CommandContext, input: CommandInput): Promise<CommandOutput> {
  const { words: [word, server] } = input;
  if (word === "update" && input.check !== true) return await update(context, { server, ...input });
  const isServer = word !== undefined && context.app.directory.isTaken(word);
  if (isServer && server === undefined) {
    throw usage(
      `Cannot run "pml lock ${word}": only \`pml lock update\` takes a server`,
      `Run \`pml lock update ${word}\`, or \`pml lock\` to see all`,
    );
  }
  if (word !== undefined) {
    throw unknownWords("lock", { ...input, known: ["update"] });
  }
  return await (input.check === true ? check(context) : show(context));
}

async function show({ app }: CommandContext): Promise<CommandOutput> {
  const pins = await app.pins();
  const { lock, home } = await pins.state();
  const names = (await app.identities()).map(({ name }) => name);
  const toShown = (name: string, entry: PinnedServer, approved: boolean) => ({
    name,
    ...entry,
    approved,
    removed: isOwnPin(entry) && !names.includes(name),
  });
  const servers = Object.entries(lock).map(([name, entry]) =>
    toShown(name, entry, JSON.stringify(memberOf(home, name)) === JSON.stringify(entry))
  );
  const local = Object.entries(home).filter(([name]) => !Object.hasOwn(lock, name))
    .map(([name, entry]) => toShown(name, entry, true));
  const texts = [
    ...servers.map((server) => textOf(server, "")),
    ...local.map((server) => textOf(server, ", not in pml.lock")),
  ];
  return {
    value: { path: pins.path, servers, local },
    text: texts.join("\n"),
    note: texts.length > 0 ? "" : "Nothing is pinned yet: the first call of a server pins it",
  };
}

function textOf(
  entry: PinnedServer & {
    readonly name: string;
    readonly approved: boolean;
    /** Whether no file defines the server any longer. */
    readonly removed: boolean;
  },
  place: string,
): string {
  const { name, source, kind, version, integrity, command, url, tools } = entry;
  const { approved, removed } = entry;
  const facts = { version, integrity, command: command && JSON.stringify(command), url };
  const lines = Object.entries({ ...facts, ...tools }).flatMap(([key, value]) =>
    value === undefined ? [] : [`  ${visible(key)}: ${visible(value, Infinity)}`]
  );
  const note = approved ? "approved by you" : "not the version that you approved";
  const end = removed ? [`  no file defines it: \`pml lock update ${name}\` removes its pin`] : [];
  return [`${name} (${visible(source)}, ${kind}, ${note}${place})`, ...lines, ...end].join("\n");
}

/**
 * Compares the lock with the present servers. Asks no question and starts no server, so that it can
 * run in CI.
 */
async function check({ app }: CommandContext): Promise<CommandOutput> {
  const pins = await app.pins();
  const differences = await pins.differences(await app.identities());
  const ok = differences.length === 0;
  const exists = infoAfterLinks(pins.path) !== undefined;
  const sameText = exists
    ? `Nothing differs from ${pins.path}`
    : `${pins.path}: ${await missingLockText(app)}. Nothing was compared`;
  return {
    value: { path: pins.path, exists, ok, differences },
    text: ok ? sameText : differences.join("\n"),
    note: ok ? "" : "Check them; `pml lock update` then pins the present content",
    code: ok ? 0 : 1,
  };
}

/** Returns a text about a missing `pml.lock`. Servers of the user's `config.yaml` need none. */
export async function missingLockText(app: App): Promise<string> {
  const isExpected = (await app.identities()).some(({ isInLock }) => isInLock);
  return isExpected
    ? "there is none yet: the first call of a server of this workspace writes it"
    : "there is none, because no server of this workspace needs it. `pml lock` shows the pins of " +
      "your own servers";
}

/** Asks about each server that differs, one after another. Without a yes, its pin does not change. */
async function update(
  context: CommandContext,
  { server, json = false }: { readonly server: string | undefined; readonly json?: boolean },
): Promise<CommandOutput> {
  const { app } = context;
  const pins = await app.pins();
  await assertTrusted(app);
  const { lock, home } = await pins.state();
  const identities = (await app.identities()).map(({ name }) => name);
  const gone = Object.entries({ ...home, ...lock }).filter(([name, pin]) =>
    isOwnPin(pin) && !identities.includes(name)
  ).map(([name]) => name);
  const names = [...identities, ...gone].filter((name) => server === undefined || name === server);
  if (server !== undefined && names.length === 0) {
    const why = "no file of yours defines it, and it has no pin";
    throw unknownNameError("update the pins of", server, {
      ...{ why, known: [...identities, ...gone], otherwise: "See all with `pml lock`" },
    });
  }
  if (!json) assertTerminal("Cannot update the lock");
  // Refreshes all servers at once, because each refresh requests the whole lists of the registries.
  const isPinned = names.some((name) =>
    Object.hasOwn({ ...lock, ...home }, name) || pins.listedBy(name).length > 0
  );
  if (isPinned) await forgetLists(app, names.length === 1 ? names[0] : undefined);
  const facts: string[] = [];
  const done = { pinned: [] as string[], left: [] as string[] };
  const record = async () => {
    if (json || done.pinned.length === 0) return;
    await recordAction(context, "lock updated", { servers: done.pinned, facts });
  };
  for (const name of names) {
    const before = done.pinned.length === 0 ? [] : [`Pinned: ${done.pinned.join(", ")}`];
    const update = await afterDone(
      context.signal,
      before,
      () => updateServer(context, { name, isGone: gone.includes(name), json }),
    ).catch(async (error) => {
      await record();
      throw error;
    });
    facts.push(...update.facts);
    if (update.facts.length > 0) done[update.isAgreed ? "pinned" : "left"].push(name);
  }
  const value = json ? { facts } : { facts, ...done };
  if (facts.length === 0) return { value, text: "Nothing differs" };
  if (json) return { value };
  await record();
  const lines = Object.entries({ Pinned: done.pinned, "Not pinned": done.left })
    .flatMap(([what, all]) => all.length === 0 ? [] : [`${what}: ${all.join(", ")}`]);
  return { value, text: lines.join("\n"), code: done.left.length === 0 ? 0 : 1 };
}

/** Shows the differences of one server, and updates its pins if the user agrees. */
async function updateServer(
  context: CommandContext,
  { name, isGone, json }: {
    readonly name: string;
    readonly isGone: boolean;
    readonly json: boolean;
  },
): Promise<{ readonly facts: readonly string[]; readonly isAgreed: boolean }> {
  const pins = await context.app.pins();
  const facts: string[] = [];
  const confirm = async (items: readonly ApprovalItem[]) => {
    const lines = items.flatMap((item) => item.facts);
    facts.push(...lines);
    if (json || lines.length === 0) return true;
    for (const line of lines) tell(line);
    const to = `pin exactly this of ${quoted(name)}; Enter leaves it out`;
    if (!await confirmWord("pin", to, context.signal)) return false;
    for (const item of items) await item.accept();
    return true;
  };
  const identity = (await context.app.identities()).find((each) => each.name === name);
  const unapproved = identity && await pins.findUnapproved(identity, { isWanted: true });
  const isAgreed = await confirm(unapproved === undefined ? [] : [unapproved]) &&
    await confirm(await findStaleTools(context, name)) &&
    await confirm([await findDifferences(context.app, { name, isGone })]);
  return { facts, isAgreed };
}

async function assertTrusted(app: App): Promise<void> {
  const unapproved = await app.policy.findUnapproved();
  if (unapproved === undefined) return;
  throw new PmlError(unapproved.code, "Cannot update the lock: the workspace file is not trusted", {
    hint: "Look at it with `pml trust`",
  });
}

/**
 * Finds the differences of a server besides its definition and tools: the differences that the trust in
 * its file covers, and a pin of a server that no file defines any longer.
 */
async function findDifferences(
  app: App,
  { name, isGone }: { readonly name: string; readonly isGone: boolean },
): Promise<ApprovalItem> {
  const pins = await app.pins();
  await pins.flush();
  const identities = (await app.identities()).filter((identity) => identity.name === name);
  const differences = (await pins.differences(await app.identities()))
    .filter((line) => line.split(":", 1)[0] === name);
  // `differences()` does not compare the pins of the PML home.
  const facts = isGone && differences.length === 0 ? [`${name}: no file defines it`] : differences;
  const accept = async () => {
    await pins.renew(identities);
    if (isGone) await pins.remove([name]);
  };
  return { facts, accept };
}

/** Requests the tools of a pinned server, and returns the ones that changed. */
async function findStaleTools(
  { app, signal }: CommandContext,
  name: string,
): Promise<readonly ApprovalItem[]> {
  const pins = await app.pins();
  const { lock, home } = await pins.state();
  const pinned = [lock, home].filter((entries) => Object.hasOwn(entries, name));
  if (pinned.length === 0 && pins.listedBy(name).length === 0) return [];
  // Loads the list again, because the known one may be old. The server's state reports a failure.
  const { lists } = app.servers;
  const skills = lists.prepare("skills", { only: name, waitsForAll: true });
  await unlessAborted(Promise.all([lists.load(name), skills]).catch(() => {}), signal);
  // Read after the lists, because a server reports its version only when it runs.
  const identity = (await app.identities()).find((each) => each.name === name);
  const items: ApprovalItem[] = [];
  // Also compares tools that were listed and never called.
  const { changed = [] } = app.servers.states().find((state) => state.name === name) ?? {};
  const tools = new Set([
    ...pinned.flatMap((entries) => Object.keys(entries[name]?.tools ?? {})),
    ...changed,
  ]);
  for (const tool of tools) {
    const definition = tool === INSTRUCTIONS
      ? app.servers.sentInstructionsOf(name)
      : app.servers.skillOf(name, tool) ?? app.catalog.get(toolId(name, tool))?.own;
    const unapproved = identity && definition &&
      await pins.findUnapprovedTool(identity, definition);
    if (unapproved) items.push(unapproved);
  }
  return items;
}
