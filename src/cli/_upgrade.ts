/**
 * `pml outdated` and `pml upgrade`: newer versions of the packages that servers are.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { Machine } from "../servers/machine.ts";
import { asPmlError, type PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import type { ProgramDefinition } from "../servers/kind.ts";
import { kindNamed, programsOf } from "../servers/kinds.ts";
import type { ServerState } from "../servers/lists/servers.ts";
import { type CommandContext, type Shown, type Typed, unchanged } from "./_command_context.ts";
import { changeOf } from "./_config_file.ts";
import { misnamed, usage } from "./_failure.ts";
import { definedIn } from "./_import_file.ts";
import { lock } from "./_lock.ts";
import { agrees, needPerson } from "./_terminal.ts";
import { tell, tellProgress } from "./out.ts";

type Newest = NonNullable<Awaited<ReturnType<Machine["newestOf"]>>>;

/**
 * Lists the servers of npm's packages, with the version that runs and the newest one, and how each
 * other server gets a newer version.
 */
export async function outdated({ app }: CommandContext): Promise<Shown> {
  const { machine } = await app.callPath();
  const all = programsOf(app.config().servers);
  const rows = await Promise.all(all.map(async (own) => {
    const { name } = own;
    try {
      const found = await machine.newestOf(name);
      if (found === undefined) return [];
      const now = found.named ?? await machine.packages.presentVersion(own) ?? null;
      return [{ name, package: found.name, now, newest: found.newest }];
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
    .filter(({ name }) => !app.directory.at(name).origin.isShipped && !compared.has(name))
    .map((state) => ({ name: state.name, ...versionsOf(app, state) }));
  // One that failed has neither version.
  const old = servers.find(({ now, newest }) => now !== null && now !== newest);
  return {
    value: { servers, others },
    text: lines.join("\n"),
    code: servers.some(({ newest }) => newest === null) ? 1 : 0,
    note: [
      servers.length === 0 && "No server of yours is a package of npm",
      old && `\`pml upgrade ${old.name}\` shows what changes, and asks`,
      ...[...Map.groupBy(others, ({ why, hint }) => `${why}. ${hint}`)].map(([text, all]) =>
        `${all.map(({ name }) => name).join(", ")}: ${text}`
      ),
    ].filter(Boolean).join("\n"),
  };
}

/** Upgrades a server to the newest version of its package, after showing the changes. */
export async function upgrade(
  at: CommandContext,
  { words: [server = ""], json }: Typed,
): Promise<Shown> {
  const { app } = at;
  const { machine } = await app.callPath();
  const own = programsOf(app.config().servers).find(({ name }) => name === server);
  const latestPackage = own && await machine.newestOf(server);
  if (latestPackage === undefined || own === undefined) {
    throw noPackage(server, { app, what: "upgrade" });
  }
  const { named, newest } = latestPackage;
  const now = named ?? await machine.packages.presentVersion(own);
  const value = { name: server, package: latestPackage.name, now: now ?? null, newest };
  if (json) return { value };
  if (now === newest) return { value, text: `${server} has the newest version, ${newest}` };
  needPerson(`Cannot upgrade ${quoted(server)}`);
  return named === undefined
    ? await repinned(at, { own, newest: latestPackage, value })
    : await rewritten(at, { own, newest: latestPackage, value });
}

/** Returns the error for a server that is not there, or that is no package of npm. */
export function noPackage(
  name: string,
  { app, what }: { readonly app: App; readonly what: string },
): PmlError {
  const states = app.servers.states();
  const state = states.find((each) => each.name === name);
  if (state === undefined) {
    const known = states.map((each) => each.name);
    return misnamed(what, name, { why: "there is no such server", known });
  }
  const { why, hint } = versionsOf(app, state);
  return usage(`Cannot ${what} ${quoted(name)}: ${why}`, hint);
}

/** Returns why npm has no versions of a server, and where its newer versions come from. */
function versionsOf(
  app: App,
  { name, kind }: Pick<ServerState, "name" | "kind">,
): { readonly why: string; readonly hint: string } {
  const { isShipped, isFetched } = app.directory.at(name).origin;
  if (isShipped) {
    return { why: "it is a part of PML", hint: "`pml update` checks for a newer PML" };
  }
  if (isFetched) {
    return {
      why: "it comes from a registry",
      hint: `\`pml lock update ${name}\` compares it with the newest entry there`,
    };
  }
  const { isOnline = false, isSandboxed = false } = kindNamed(kind) ?? {};
  if (isOnline) return { why: "it is a remote server", hint: "Its operator upgrades it" };
  return isSandboxed ? { why: "it is a module", hint: "Change its file; PML then asks again" } : {
    why: "its command is not a package of npm",
    hint: "Upgrade the program of its command; PML then compares its tools",
  };
}

/** An upgrade. */
interface Upgrade {
  readonly own: ProgramDefinition;
  readonly newest: Newest;
  readonly value: unknown;
}

/** Upgrades a command without a version: the lock contains it. */
async function repinned(
  at: CommandContext,
  { own, newest, value }: Upgrade,
): Promise<Shown> {
  const { app } = at;
  const { packages } = (await app.callPath()).machine;
  const pins = await app.pins();
  const installed = await newest.install(tellProgress);
  const { identity, before } = packages.take(own, installed);
  const open = await pins.unapproved(identity, { isWanted: true });
  const from = before === undefined ? "" : ` instead of ${visible(before.version)}`;
  const question = `Start ${own.name} ${newest.newest}${from}, and compare its tools?`;
  if (!await agrees(question, at, open?.facts)) return unchanged();
  await open?.accept();
  const done = await compared(at, { own, newest, value });
  if (done !== undefined) return done;
  if (before === undefined) return unchanged();
  await (await pins.unapproved(packages.take(own, before).identity, { isWanted: true }))
    ?.accept();
  // The stored lists are those of the newer version.
  app.servers.lists.forget(own.name);
  return { ...unchanged(), text: `${own.name} stays at ${visible(before.version)}` };
}

/** Upgrades a command that names a version: the file that defines it is changed. */
async function rewritten(at: CommandContext, { own, newest, value }: Upgrade): Promise<Shown> {
  const { app } = at;
  const spec = `${newest.name}@${newest.newest}`;
  const { workspace, title, section } = await definedIn(app, own);
  if (section === undefined) {
    throw usage(
      `Cannot upgrade ${quoted(own.name)}: no file of yours defines it`,
      "See `pml list`",
    );
  }
  const args = own.args.map((one) => one === newest.spec ? spec : one);
  const changeTo = (entry: readonly string[]) =>
    changeOf(app, { workspace, settings: [{ at: [section, title, "args"], entry }] });
  const change = await changeTo(args);
  if (change.diff === "") {
    throw usage(
      `Cannot upgrade ${quoted(own.name)}: ${quoted(newest.spec)} is not a separate argument`,
      `Write ${spec} in ${change.path}`,
    );
  }
  const question = `Change it, start ${own.name}, and compare its tools?`;
  if (!await agrees(question, at, [change.shown])) return unchanged();
  await change.write();
  await app.policy.reload();
  const done = await compared(at, { own, newest, value });
  if (done !== undefined) return done;
  await (await changeTo(own.args)).write();
  return { ...unchanged(), text: `${own.name} stays at ${newest.named}` };
}

/** Reports success if the user pinned the new version, or nothing differs. */
async function compared(
  at: CommandContext,
  { own: { name }, newest, value }: Upgrade,
): Promise<Shown | undefined> {
  const { code = 0, text = "" } = await lock(at, { words: ["update", name] });
  tell(text);
  return code === 0 ? { value, text: `${name} has the version ${newest.newest} now` } : undefined;
}
