/**
 * `pml outdated` and `pml upgrade`: list and install newer versions of servers that are npm packages.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { Machine } from "../servers/machine.ts";
import { asPmlError, type PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import type { ProgramDefinition } from "../servers/kind.ts";
import { findKind, programsOf } from "../servers/kinds.ts";
import type { ServerState } from "../servers/lists/servers.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  unchanged,
} from "./_command_context.ts";
import { planChange } from "./_config_file.ts";
import { unknownNameError, usage } from "./_failure.ts";
import { findDefinition } from "./_undoable_edits.ts";
import { lock } from "./_lock.ts";
import { agrees, assertTerminal } from "./_terminal.ts";
import { tell, tellProgress } from "./out.ts";

type Newest = NonNullable<Awaited<ReturnType<Machine["newestOf"]>>>;

/**
 * Lists the servers that are npm packages, with the version that runs and the newest one. Also names
 * the way in which each other server gets a newer version.
 */
export async function outdated({ app }: CommandContext): Promise<CommandOutput> {
  const { machine } = await app.callPath();
  const programs = programsOf(app.config().servers);
  const rows = await Promise.all(programs.map(async (program) => {
    const { name } = program;
    try {
      const latest = await machine.newestOf(name);
      if (latest === undefined) return [];
      const now = latest.namedVersion ?? await machine.packages.presentVersion(program) ?? null;
      return [{ name, package: latest.name, now, newest: latest.newestVersion }];
    } catch (error) {
      const { message: why } = asPmlError(error);
      return [{ name, package: null, now: null, newest: null, why }];
    }
  }));
  const servers = rows.flat();
  const lines = servers.map(({ name, now, newest, ...rest }) => {
    if (newest === null) return `${name.padEnd(20)} ${"why" in rest ? rest.why : ""}`;
    const state = now === null ? "not installed yet" : now === newest ? "newest" : "upgrade it";
    return `${name.padEnd(20)} ${(now ?? "-").padEnd(12)} ${newest.padEnd(12)} ${state}`;
  });
  const compared = new Set(servers.map(({ name }) => name));
  const others = app.servers.states()
    .filter(({ name }) => !app.directory.get(name).origin.isShipped && !compared.has(name))
    .map((state) => ({ name: state.name, ...explainVersions(app, state) }));
  // A server whose look-up failed has neither version.
  const old = servers.find(({ now, newest }) => now !== null && now !== newest);
  return {
    value: { servers, others },
    text: lines.join("\n"),
    code: servers.some(({ newest }) => newest === null) ? 1 : 0,
    note: [
      servers.length === 0 && "No server of yours is a package of npm",
      old && `\`pml upgrade ${old.name}\` shows what changes, and asks`,
      ...others.map(({ name, why, hint }) => `${name}: ${why}. ${hint}`),
    ].filter(Boolean).join("\n"),
  };
}

/** Upgrades a server to the newest version of its package, after showing the changes. */
export async function upgrade(
  context: CommandContext,
  { words: [server = ""], json }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const { machine } = await app.callPath();
  const program = programsOf(app.config().servers).find(({ name }) => name === server);
  const latestPackage = program && await machine.newestOf(server);
  if (latestPackage === undefined || program === undefined) {
    throw notPackageError(server, { app, verb: "upgrade" });
  }
  const { namedVersion: named, newestVersion: newest } = latestPackage;
  const current = named ?? await machine.packages.presentVersion(program);
  const value = { name: server, package: latestPackage.name, now: current ?? null, newest };
  if (json) return { value };
  if (current === newest) return { value, text: `${server} has the newest version, ${newest}` };
  assertTerminal(`Cannot upgrade ${quoted(server)}`);
  return named === undefined
    ? await upgradeLocked(context, { program, newest: latestPackage, value })
    : await upgradeInFile(context, { program, newest: latestPackage, value });
}

/** Returns the error for a server that is unknown, or that is not an npm package. */
export function notPackageError(
  name: string,
  { app, verb }: { readonly app: App; readonly verb: string },
): PmlError {
  const states = app.servers.states();
  const state = states.find((each) => each.name === name);
  if (state === undefined) {
    const known = states.map((each) => each.name);
    return unknownNameError(verb, name, { why: "there is no such server", known });
  }
  const { why, hint } = explainVersions(app, state);
  return usage(`Cannot ${verb} ${quoted(name)}: ${why}`, hint);
}

/** Returns why npm has no versions of a server, and where its newer versions come from. */
function explainVersions(
  app: App,
  { name, kind }: Pick<ServerState, "name" | "kind">,
): { readonly why: string; readonly hint: string } {
  const { isShipped, isFetched } = app.directory.get(name).origin;
  if (isShipped) {
    return { why: "it is a part of PML", hint: "`pml update` checks for a newer PML" };
  }
  if (isFetched) {
    return {
      why: "it comes from a registry",
      hint: `\`pml lock update ${name}\` compares it with the newest entry there`,
    };
  }
  const { isOnline = false, isSandboxed = false, isSaved = false } = findKind(kind) ?? {};
  if (isSaved) {
    return { why: "it has your saved capabilities", hint: "`pml capability save` changes one" };
  }
  if (isOnline) return { why: "it is a remote server", hint: "Its operator upgrades it" };
  return isSandboxed ? { why: "it is a module", hint: "Change its file; PML then asks again" } : {
    why: "its command is not a package of npm",
    hint: "Upgrade the program of its command; PML then compares its tools",
  };
}

/** An upgrade of a server to the newest version. */
interface Upgrade {
  readonly program: ProgramDefinition;
  readonly newest: Newest;
  readonly value: unknown;
}

/** Upgrades a command without a version: the lock contains the version. */
async function upgradeLocked(
  context: CommandContext,
  { program, newest, value }: Upgrade,
): Promise<CommandOutput> {
  const { app } = context;
  const { packages } = (await app.callPath()).machine;
  const pins = await app.pins();
  const installed = await newest.install(tellProgress);
  const { identity, before } = packages.setInstalled(program, installed);
  const unapproved = await pins.findUnapproved(identity, { isWanted: true });
  const from = before === undefined ? "" : ` instead of ${visible(before.version)}`;
  const question = `Start ${program.name} ${newest.newestVersion}${from}, and compare its tools?`;
  if (!await agrees(question, context, unapproved?.facts)) return unchanged();
  await unapproved?.accept();
  const restore = async () => {
    if (before === undefined) return;
    await (await pins.findUnapproved(packages.setInstalled(program, before).identity, {
      isWanted: true,
    }))
      ?.accept();
    // The stored lists are those of the newer version.
    app.servers.lists.forget(program.name);
  };
  const done = await compareTools(context, { program, newest, value }, restore);
  if (done !== undefined) return done;
  if (before === undefined) return unchanged();
  return { ...unchanged(), text: `${program.name} stays at ${visible(before.version)}` };
}

/** Upgrades a command that names a version: the file that defines it is changed. */
async function upgradeInFile(
  context: CommandContext,
  { program, newest, value }: Upgrade,
): Promise<CommandOutput> {
  const { app } = context;
  const spec = `${newest.name}@${newest.newestVersion}`;
  const { workspace, title, section } = await findDefinition(app, program);
  if (section === undefined) {
    throw usage(
      `Cannot upgrade ${quoted(program.name)}: no file of yours defines it`,
      "See `pml list`",
    );
  }
  const args = program.args.map((one) => one === newest.spec ? spec : one);
  const changeTo = (entry: readonly string[]) =>
    planChange(app, { workspace, settings: [{ at: [section, title, "args"], entry }] });
  const change = await changeTo(args);
  if (change.diff === "") {
    throw usage(
      `Cannot upgrade ${quoted(program.name)}: ${quoted(newest.spec)} is not a separate argument`,
      `Write ${spec} in ${change.path}`,
    );
  }
  const question = `Change it, start ${program.name}, and compare its tools?`;
  if (!await agrees(question, context, [change.shown])) return unchanged();
  await change.write();
  await app.policy.reload();
  const restore = async () => await (await changeTo(program.args)).write();
  const done = await compareTools(context, { program, newest, value }, restore);
  if (done !== undefined) return done;
  return { ...unchanged(), text: `${program.name} stays at ${newest.namedVersion}` };
}

/**
 * Returns the output if the user pinned the new version, or nothing differs. Otherwise restores the
 * earlier version, also if the user stops, and returns undefined.
 */
async function compareTools(
  context: CommandContext,
  { program: { name }, newest, value }: Upgrade,
  restore: () => Promise<void>,
): Promise<CommandOutput | undefined> {
  const { code = 0, text = "" } = await lock(context, { words: ["update", name] }).catch(
    async (error) => {
      if (asPmlError(error).code === "CANCELLED") await restore();
      throw error;
    },
  );
  tell(text);
  if (code === 0) return { value, text: `${name} has the version ${newest.newestVersion} now` };
  await restore();
  return undefined;
}
