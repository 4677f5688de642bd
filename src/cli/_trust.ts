/**
 * `pml trust`: shows the content of the workspace file, asks the user, and stores or removes the trust.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { isLineOf } from "../config/workspace_lines.ts";
import { sha256 } from "../core/hash.ts";
import { quoted, visible } from "../core/json.ts";
import { asPmlError } from "../core/errors.ts";
import { realPathOf } from "../io/path_info.ts";
import { readPlain } from "../io/private_files.ts";
import type { TrustRecord } from "../policy/trust.ts";
import { codeChanges } from "./_code_changes.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  recordAction,
} from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { readRules } from "./_rules.ts";
import { offerTable } from "./_table_question.ts";
import { afterDone, assertTerminal, confirmWord } from "./_terminal.ts";
import { tell } from "./out.ts";
import { typedPath } from "./command_process.ts";

type Unapproved = NonNullable<Awaited<ReturnType<App["policy"]["findUnapproved"]>>>;

/** Shows or changes the trust. */
export async function trust(context: CommandContext, input: CommandInput): Promise<CommandOutput> {
  const { list = false, revoke = false, words: [file] } = input;
  if (list && revoke || file !== undefined && !revoke) {
    throw usage(
      "Cannot run `pml trust` like this: a file goes with --revoke only, and neither goes with --list",
      "Run `pml trust` in the folder of the file to trust it",
    );
  }
  if (list) return await listTrusted(context);
  return revoke ? await revokeTrust(context, file) : await trustNow(context, input);
}

async function trustNow(context: CommandContext, { json }: CommandInput): Promise<CommandOutput> {
  const { app, signal } = context;
  const unapproved = await app.policy.findUnapproved();
  const file = app.loaded().workspace.file ?? null;
  const trusted = unapproved === undefined && file !== null;
  const servers = unapproved === undefined ? await unapprovedByRules(context) : [];
  const items = servers.map(({ name, facts }) => ({ name, facts }));
  const value = { path: file, trusted, facts: unapproved?.facts ?? [], servers: items };
  if (json) {
    return { value: { ...value, code: await codeChanges(context, unapproved?.changedCode ?? []) } };
  }
  if (unapproved === undefined && servers.length === 0) {
    return {
      value,
      text: trusted
        ? `Trusted already: ${file}`
        : "There is no workspace file; `pml init` makes one",
    };
  }
  assertTerminal("Cannot trust the workspace file");
  if (unapproved !== undefined) {
    const path = app.loaded().file?.realPath ?? "";
    const earlier = await app.policy.store.record(path);
    const facts = await askUntrusted(context, unapproved);
    if (facts === undefined) {
      return { value, text: "Not trusted: nothing was changed", code: 1 };
    }
    await recordAction(context, "trusted", { file, facts });
    await app.policy.reload();
    const pinned = await renewPins(app);
    const lines = await afterDone(
      context.signal,
      ["Trusted", ...pinned],
      () => offerTables(context, earlier),
    );
    if (pinned.length + lines.length > 0) tell([...pinned, ...lines].join("\n"));
  }
  // PML asks the registries of a trusted file only, so the servers are looked up again.
  for (
    const { name, facts, accept } of unapproved === undefined
      ? servers
      : await unapprovedByRules(context)
  ) {
    tell(`\nA rule allows ${quoted(name)}. Its first use would ask:`);
    const done = unapproved === undefined ? [] : ["Trusted"];
    const ask = () => askUntrusted(context, { facts, accept });
    if (await afterDone(signal, done, ask) !== undefined) {
      await recordAction(context, "trusted", { server: name, facts });
    }
  }
  return { value, text: unapproved === undefined ? "" : "Trusted" };
}

/**
 * Pins the code and the definitions that the user has trusted, for servers that are pinned already.
 * Returns a line if that changed `pml.lock`, or failed.
 */
async function renewPins(app: App): Promise<readonly string[]> {
  try {
    const pins = await app.pins();
    const identities = await app.identities();
    const before = await pins.differences(identities);
    if (before.length === 0) return [];
    // Code that has changed since the question is not trusted.
    const isTrusted = (name: string) => app.policy.whyBlocked(name) === undefined;
    await pins.renew(identities.filter(({ name, isInLock }) => isInLock && isTrusted(name)));
    const isChanged = (await pins.differences(identities)).length < before.length;
    return isChanged ? [`${pins.path}: pins what you have trusted`] : [];
  } catch (error) {
    // The file is trusted all the same. The next call of a server pins it, or reports the error.
    return [`The pins stay as they were: ${asPmlError(error).message}`];
  }
}

/**
 * Offers the table of the servers that are new in the file since the earlier trust. Returns lines
 * about the result, or the next step if no server is new.
 */
async function offerTables(context: CommandContext, earlier: TrustRecord | undefined) {
  const { app } = context;
  const sharedNames = app.config().servers.filter((server) => app.policy.isShared(server))
    .map(({ name }) => name);
  const added: string[] = [];
  for (const name of sharedNames) if (await isNew(app, name, earlier)) added.push(name);
  const lines = await offerTable(context, added, true);
  const next = "`pml rules table` shows the decisions for its tools";
  return lines.length > 0 || sharedNames.length === 0 ? lines : [next];
}

/** Returns whether a server was not in the file at the earlier trust. */
async function isNew(
  app: App,
  name: string,
  earlier: TrustRecord | undefined,
): Promise<boolean> {
  if (earlier === undefined) return true;
  // PML created this file itself. A server with rules is one about which the user has decided.
  if (earlier.shown === undefined) return (await readRules(app, name)).length === 0;
  return !earlier.shown.some((line) => isLineOf(line, name));
}

/**
 * Returns the servers of registries that a rule allows by name and that are not approved yet.
 * Unreachable registries are reported, and their servers ask at their first use.
 */
async function unapprovedByRules(
  { app, signal }: CommandContext,
): Promise<readonly (Unapproved & { readonly name: string })[]> {
  const { config: { rules, registries }, known } = app.policy.now;
  if (registries.length === 0) return [];
  const allowedNames = rules.allow.flatMap(({ pattern }) =>
    pattern.kind !== "any" && !known(pattern.server) && app.policy.hasRuleFor(pattern.server) &&
      app.policy.definitionOf(pattern.server) === undefined
      ? [pattern.server]
      : []
  );
  const items = [];
  for (const name of new Set(allowedNames)) {
    try {
      const unapproved = await (await app.registries())
        .findUnapproved(name, { signal, isAllowed: false, isNamed: true });
      if (unapproved !== undefined) items.push({ ...unapproved, name });
    } catch (error) {
      // Only `pml doctor` reports failures of the default registry.
      if (registries.every(({ isDefault }) => isDefault)) continue;
      tell(`warning: a rule allows ${quoted(name)}: ${asPmlError(error).message}`);
    }
  }
  return items;
}

/**
 * Shows the parts without an approval, with the changes of code, and stores the approval if the user
 * types a word. Returns the lines that the user saw; undefined if the user declined.
 */
export async function askUntrusted(
  context: CommandContext,
  { facts, changedCode = [], accept }: Pick<Unapproved, "facts" | "changedCode" | "accept">,
): Promise<readonly string[] | undefined> {
  const changes = await codeChanges(context, changedCode);
  const shown = [...facts, ...changes.flatMap(({ lines }) => lines)];
  for (const line of shown) tell(line);
  if (!await confirmWord("trust", "trust exactly this", context.signal)) return undefined;
  await accept();
  return shown;
}

/**
 * Returns the trust in the workspace file and its code as text, and whether the user still has to decide
 * about it. Returns undefined without a file.
 */
export async function trustState(app: App): Promise<
  { readonly isUndecided: boolean; readonly text: string } | undefined
> {
  if (app.loaded().workspace.file === undefined) return undefined;
  if (await app.policy.findUnapproved() === undefined) {
    return { isUndecided: false, text: "trusted" };
  }
  const changed = changedCode(app);
  return changed.length === 0
    ? { isUndecided: true, text: "not trusted yet" }
    : { isUndecided: true, text: `trusted; the code of ${changed.join(", ")} changed since` };
}

/** Returns the servers of a trusted workspace file whose code is not the approved one. */
function changedCode(app: App): readonly string[] {
  const { trusted, servers } = app.config();
  if (!trusted) return [];
  return servers.map(({ name }) => name).filter((name) =>
    app.policy.whyBlocked(name) !== undefined
  );
}

/** Lists the files that are or were trusted. */
async function listTrusted({ app }: CommandContext): Promise<CommandOutput> {
  const currentFile = app.loaded().workspace.file;
  const files = (await app.policy.store.list()).map(({ path, hashes }) => {
    const file = readPlain(path);
    const state = file === undefined
      ? "gone"
      : hashes.includes(sha256(file.bytes))
      ? "trusted"
      : "changed since";
    const changed = path === currentFile ? changedCode(app) : [];
    return { path, state, ...changed.length > 0 && { changed } };
  });
  const lines = files.map(({ path, state, changed = [] }) => {
    const codeNote = changed.length === 0
      ? ""
      : `; the code of ${changed.join(", ")} changed since`;
    return `${state.padEnd(14)} ${visible(path, Infinity)}${codeNote}`;
  });
  return {
    value: { files },
    text: lines.join("\n"),
    note: files.length === 0 ? "No workspace file is trusted" : "",
  };
}

async function revokeTrust(
  context: CommandContext,
  file: string | undefined,
): Promise<CommandOutput> {
  const { app } = context;
  const path = realPathOf(file === undefined ? app.policy.rulesFile : typedPath(file));
  if (!await app.policy.trust.revoke(path)) {
    throw usage(
      `Cannot revoke the trust in ${quoted(path, 400)}: it is not trusted`,
      "See `pml trust --list`",
    );
  }
  await recordAction(context, "trust revoked", { file: path });
  await app.policy.settle();
  const listed = app.config().trusted && file === undefined
    ? "PML_TRUST still lists it: take it out there"
    : "";
  return { value: { path }, text: `No longer trusted: ${path}`, note: listed };
}
