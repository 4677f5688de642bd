/**
 * `pml trust`: shows the content of the workspace file, asks the user, and stores or removes the trust.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { isLineOf } from "../config/shown.ts";
import { realPathOf } from "../config/workspace.ts";
import { sha256 } from "../core/hash.ts";
import { quoted, visible } from "../core/json.ts";
import { asPmlError } from "../core/errors.ts";
import { readPlain } from "../io/private_files.ts";
import type { TrustRecord } from "../policy/trust.ts";
import { type CommandContext, recordAction, type Shown, type Typed } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { rulesOf } from "./_rules.ts";
import { offerTable } from "./_table_question.ts";
import { isTyped, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";
import { typedPath } from "./command_process.ts";

type Unapproved = NonNullable<Awaited<ReturnType<App["policy"]["unapproved"]>>>;

/** Shows or changes the trust. */
export async function trust(at: CommandContext, typed: Typed): Promise<Shown> {
  const { list = false, revoke = false, words: [file] } = typed;
  if (list && revoke || file !== undefined && !revoke) {
    throw usage(
      "Cannot run `pml trust` like this: a file goes with --revoke only, and neither goes with --list",
      "Run `pml trust` in the folder of the file to trust it",
    );
  }
  if (list) return await listed(at);
  return revoke ? await revoked(at, file) : await trustNow(at, typed);
}

async function trustNow(at: CommandContext, { json }: Typed): Promise<Shown> {
  const { app, signal } = at;
  const open = await app.policy.unapproved();
  const file = app.loaded().workspace.file ?? null;
  const trusted = open === undefined && file !== null;
  const servers = open === undefined ? await namedByRules(at) : [];
  const items = servers.map(({ name, facts }) => ({ name, facts }));
  const value = { path: file, trusted, facts: open?.facts ?? [], servers: items };
  if (json) return { value };
  if (open === undefined && servers.length === 0) {
    return {
      value,
      text: trusted
        ? `Trusted already: ${file}`
        : "There is no workspace file; `pml init` makes one",
    };
  }
  needPerson("Cannot trust the workspace file");
  if (open !== undefined) {
    const path = app.loaded().file?.realPath ?? "";
    const earlier = await app.policy.store.record(path);
    if (!await askUntrusted(open, signal)) {
      return { value, text: "Not trusted: nothing was changed", code: 1 };
    }
    await recordAction(at, "trusted", { file, facts: open.facts });
    const lines = await offerTables(at, earlier);
    if (lines.length > 0) tell(lines.join("\n"));
  }
  // Only a trusted file names the registries that PML asks.
  for (const { name, facts, accept } of open === undefined ? servers : await namedByRules(at)) {
    tell(`\nA rule allows ${quoted(name)}. Its first use would ask:`);
    if (await askUntrusted({ facts, accept }, signal)) {
      await recordAction(at, "trusted", { server: name, facts });
    }
  }
  return { value, text: open === undefined ? "" : "Trusted" };
}

/**
 * Offers the table of the servers that are new in the file since the earlier trust. Returns lines
 * about the result, or the next step if no server is new.
 */
async function offerTables(at: CommandContext, earlier: TrustRecord | undefined) {
  const { app } = at;
  await app.policy.reload();
  const names = app.config().servers.filter((server) => app.policy.isShared(server))
    .map(({ name }) => name);
  const added: string[] = [];
  for (const name of names) if (await isNew(app, name, earlier)) added.push(name);
  const lines = await offerTable(at, added, true);
  const next = "`pml rules table` shows the decisions for its tools";
  return lines.length > 0 || names.length === 0 ? lines : [next];
}

/** Returns whether a server was not in the file at the earlier trust. */
async function isNew(
  app: App,
  name: string,
  earlier: TrustRecord | undefined,
): Promise<boolean> {
  if (earlier === undefined) return true;
  // PML made the file, and the user decided about a server that PML added.
  if (earlier.shown === undefined) return (await rulesOf(app, name)).length === 0;
  return !earlier.shown.some((line) => isLineOf(line, name));
}

/**
 * Returns the servers of registries that a rule allows by name and that are not approved yet.
 * Unreachable registries are reported, and their servers ask at their first use.
 */
async function namedByRules(
  { app, signal }: CommandContext,
): Promise<readonly (Unapproved & { readonly name: string })[]> {
  const { config: { rules, registries }, known } = app.policy.now;
  if (registries.length === 0) return [];
  const named = rules.allow.flatMap(({ pattern }) =>
    pattern.kind !== "any" && !known(pattern.server) && app.policy.names(pattern.server) &&
      app.policy.definitionOf(pattern.server) === undefined
      ? [pattern.server]
      : []
  );
  const items = [];
  for (const name of new Set(named)) {
    try {
      const unapproved = await (await app.registries())
        .unapproved(name, { signal, isAllowed: false, isNamed: true });
      if (unapproved !== undefined) items.push({ ...unapproved, name });
    } catch (error) {
      // Only `pml doctor` reports the default registry.
      if (registries.every(({ isDefault }) => isDefault)) continue;
      tell(`warning: a rule allows ${quoted(name)}: ${asPmlError(error).message}`);
    }
  }
  return items;
}

/**
 * Shows the parts without an approval, and stores the approval if the user types a word. Returns
 * whether they did.
 */
export async function askUntrusted(
  { facts, accept }: Pick<Unapproved, "facts" | "accept">,
  signal: AbortSignal,
): Promise<boolean> {
  for (const fact of facts) tell(fact);
  if (!await isTyped("trust", "trust exactly this", signal)) return false;
  await accept();
  return true;
}

/** Returns whether the present workspace file is trusted, with its code; undefined without a file. */
export async function trustState(app: App): Promise<
  { readonly isOpen: boolean; readonly text: string } | undefined
> {
  if (app.loaded().workspace.file === undefined) return undefined;
  if (await app.policy.unapproved() === undefined) return { isOpen: false, text: "trusted" };
  const changed = changedCode(app);
  return changed.length === 0
    ? { isOpen: true, text: "not trusted yet" }
    : { isOpen: true, text: `trusted; the code of ${changed.join(", ")} changed since` };
}

/** Returns the servers of a trusted workspace file whose code is not the approved one. */
function changedCode(app: App): readonly string[] {
  const { trusted, servers } = app.config();
  if (!trusted) return [];
  return servers.map(({ name }) => name).filter((name) => app.policy.blocked(name) !== undefined);
}

/** Lists the files that are or were trusted. */
async function listed({ app }: CommandContext): Promise<Shown> {
  const present = app.loaded().workspace.file;
  const files = (await app.policy.store.list()).map(({ path, hashes }) => {
    const now = readPlain(path);
    const state = now === undefined
      ? "gone"
      : hashes.includes(sha256(now.bytes))
      ? "trusted"
      : "changed since";
    const changed = path === present ? changedCode(app) : [];
    return { path, state, ...changed.length > 0 && { changed } };
  });
  const lines = files.map(({ path, state, changed = [] }) => {
    const but = changed.length === 0 ? "" : `; the code of ${changed.join(", ")} changed since`;
    return `${state.padEnd(14)} ${visible(path, Infinity)}${but}`;
  });
  return {
    value: { files },
    text: lines.join("\n"),
    note: files.length === 0 ? "No workspace file is trusted" : "",
  };
}

async function revoked(at: CommandContext, file: string | undefined): Promise<Shown> {
  const { app } = at;
  const path = realPathOf(file === undefined ? app.policy.rulesFile : typedPath(file));
  if (!await app.policy.trust.revoke(path)) {
    throw usage(
      `Cannot take the trust in ${quoted(path, 400)} back: it is not trusted`,
      "See `pml trust --list`",
    );
  }
  await recordAction(at, "trust revoked", { file: path });
  await app.policy.settle();
  const listed = app.config().trusted && file === undefined
    ? "PML_TRUST still lists it: take it out there"
    : "";
  return { value: { path }, text: `No longer trusted: ${path}`, note: listed };
}
