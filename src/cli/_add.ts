/**
 * `pml add`, `pml remove` and `pml list`: the servers of the user and of the workspace.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { defined, quoted, visible } from "../core/json.ts";
import { serverSlug } from "../core/tool_id.ts";
import { programsOf } from "../servers/kinds.ts";
import { UnreachedName } from "../servers/unreached_name.ts";
import { definitionOf } from "./_added_definition.ts";
import { addModule, moduleIn } from "./_add_module.ts";
import { type CommandContext, type Shown, type Typed, unchanged } from "./_command_context.ts";
import { changeOf } from "./_config_file.ts";
import {
  agreesToRemove,
  DefinitionEdit,
  offerSignOut,
  presentEntry,
  removalOf,
  replacedEntry,
  undefinedServer,
} from "./_definition_edit.ts";
import { usage } from "./_failure.ts";
import { stateSaid } from "./_find.ts";
import { startFirst } from "./_first_start.ts";
import { findTarget, findUndo, isReplacement } from "./_import_file.ts";
import { keepValues, revert } from "./_import.ts";
import { saveKey } from "./_key.ts";
import { ruleRemovals } from "./_rules.ts";
import { pruneUnused } from "./prune.ts";
import { agrees, askSecret, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

const OF_NPM = "npm:";
const HOW = "Say how it starts: pml add NAME -- COMMAND, NAME --url URL, or npm:PACKAGE";
/** Matches a package or an address, which is not the name of a server. */
const NAMELESS = /^(?:npm:|@)|:\/\//;
/** Matches a header without its name, such as `Bearer KEY`. */
const SCHEME = /^(?:Bearer|Basic)\s+\S/i;

/** Adds a server: of a command, an address, a module, of npm or of a registry. */
export async function add(at: CommandContext, typed: Typed): Promise<Shown> {
  if (typed.undo) return await undoReplacement(at, typed);
  const { words, url } = typed;
  if (words.length === 0) {
    throw usage("Cannot add: the server is missing", "Look at `pml add --help`");
  }
  const module = moduleIn(typed);
  if (module !== undefined) return await addModule(at, module, typed);
  const [title = "", ...command] = NAMELESS.test(words[0] ?? "") ? ["", ...words] : words;
  const [what = "", ...rest] = command;
  const [sign] = /^@|:\/\//.exec(what) ?? [];
  if (sign !== undefined) {
    const how = sign === "@" ? `npm:${what}` : `${title || "NAME"} --url ${what}`;
    throw usage(`Cannot add ${quoted(what)}: it is no name`, `Write \`pml add ${how}\``);
  }
  if (what === "" && url === undefined) {
    if (!typed.replace) return await addOffered(at, typed);
    throw usage(
      `Cannot replace ${quoted(title)}: the new definition is missing`,
      `Write it after the name: -- COMMAND, --url URL, npm:PACKAGE or the file of a module`,
    );
  }
  const isNpm = what.startsWith(OF_NPM);
  const spec = what.slice(OF_NPM.length);
  const name = title || nameOf(spec);
  const [program, ...args] = isNpm ? ["npx", "-y", spec, ...rest] : command;
  const fields = {
    ...(program !== undefined && { command: program, args }),
    ...(url !== undefined && { url, headers: headersOf(typed.header) }),
    ...(typed.env !== undefined && { env: pairsOf(typed.env, "=") }),
  };
  const present = await replacedEntry(at, name, typed);
  const workspace = present?.workspace ?? typed.workspace === true;
  const found = await definitionOf(at, { name, fields, workspace, present });
  const { definition, keys } = found;
  const edit = await DefinitionEdit.of(at, {
    ...{ name, workspace, present, section: "mcpServers", entry: definition },
  });
  const { path, diff, shown } = edit.change;
  if (typed.json) return { value: { name, path, definition, keys, diff } };
  needPerson(`Cannot add ${quoted(name)}`);
  const facts = [shown, ...edit.facts, ...found.lines];
  const does = edit.does === "add" ? "Add" : "Replace";
  if (!await agrees(`${does} ${name} and start it?`, at, facts)) return unchanged();
  await edit.askRemovals();
  await edit.write();
  const kept = await keepValues(at, found.pick, { source: "as you typed it", replaces: true });
  const lines = [
    ...kept.values(),
    ...await setKeys(at, found),
    ...edit.notes,
    ...present === undefined ? [] : await offerSignOut(at, { name, url }),
  ];
  if (lines.length > 0) tell(lines.join("\n"));
  const takeOut = () => edit.takeOut();
  const isPackage = program === "npx";
  const [undoing] = edit.notes;
  return await startFirst(at, { name, isNpm: isPackage, workspace, takeOut, undoing });
}

/** Offers to set the keys of a definition that are not set. Returns a line for each that is kept. */
async function setKeys(
  at: CommandContext,
  { keys, pick }: Awaited<ReturnType<typeof definitionOf>>,
): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const { name } of keys.filter((key) => !key.set && !pick.values.has(key.name))) {
    if (!await agrees(`${name} is not set. Type its value now, for PML to keep?`, at)) continue;
    const value = await askSecret(`The value of ${name}`, at.signal);
    if (!value) continue;
    const { text = "" } = await saveKey(at, name, value);
    lines.push(text);
    at.app.keys.find(name);
  }
  if (lines.length > 0) await at.app.keys.looked();
  return lines;
}

/** Reverts the last `pml add --replace`. */
async function undoReplacement(at: CommandContext, { workspace = false }: Typed): Promise<Shown> {
  const target = await findTarget(at.app, workspace);
  if (isReplacement(at.app, target.path)) {
    return await revert(at, [await findUndo(at.app, target)], {
      tried: "Cannot undo the replacement",
    });
  }
  throw usage(
    `Cannot undo: the last edit of ${target.path} is no \`pml add --replace\``,
    "`--workspace` undoes one in .pml.json; `pml remove` removes a server",
  );
}

/** Takes up a server that a registry offers. */
async function addOffered(at: CommandContext, { words: [name = ""] }: Typed): Promise<Shown> {
  const registries = await at.app.registries();
  const look = () =>
    registries.unapproved(name, { signal: at.signal, isAllowed: false, isNamed: true });
  const open = await look().catch((error) => {
    if (!(error instanceof UnreachedName)) throw error;
    const { code, message, hint = "", detail } = error;
    const both = `${hint}. ${HOW}`;
    throw new PmlError(code, message, { hint: both, cause: error, ...defined({ detail }) });
  });
  if (open === undefined && registries.at(name) === undefined) {
    throw usage(
      `Cannot add ${quoted(name)}: no registry has it`,
      HOW,
    );
  }
  if (open !== undefined) {
    needPerson(`Cannot add ${quoted(name)}`, "");
    if (!await agrees(`Use ${name} in this workspace?`, at, open.facts)) return unchanged();
    await open.accept();
    await look();
  }
  const takeOut = async () => await (await at.app.pins()).remove([name]);
  return await startFirst(at, { name, isNpm: false, workspace: true, takeOut });
}

/** Removes the definition of a server. */
export async function remove(
  at: CommandContext,
  { words: [name = ""], workspace }: Typed,
): Promise<Shown> {
  const { app } = at;
  const { present, names } = await presentEntry(app, name, { workspace, tried: "remove" });
  if (present === undefined) throw undefinedServer(app, name, names);
  const settings = removalOf(present);
  const change = await changeOf(app, { workspace: present.workspace, settings });
  needPerson(`Cannot remove ${quoted(name)}`, "");
  if (!await agrees(`Remove ${name}?`, at, [change.shown])) return unchanged();
  await change.write();
  await app.policy.reload();
  const rulesOf = await removeRules(at, serverSlug(name));
  const pruned = await pruneUnused(app);
  const note = pruned.length === 0
    ? ""
    : `Removed with it, for nothing names it: ${pruned.join(", ")}`;
  return {
    value: { name, path: change.path, rules: rulesOf, pruned },
    text: [change.path, ...rulesOf].map((path) => `${path}: changed`).join("\n"),
    note,
  };
}

/**
 * Offers to remove the rules and grants of a server that was removed: another server of that name
 * would run by them. Returns the changed files.
 */
async function removeRules(at: CommandContext, name: string): Promise<readonly string[]> {
  const removals = await ruleRemovals(at.app, name);
  if (removals.length === 0 || !await agreesToRemove(at, name, removals)) return [];
  const changes = await Promise.all(removals.map((one) => changeOf(at.app, one)));
  for (const { write } of changes) await write();
  await at.app.policy.reload();
  return changes.map(({ path }) => path);
}

/** Lists the servers: where each is defined, and whether it may run. Nothing is started. */
export function listServers({ app }: CommandContext): Promise<Shown> {
  const { file, person } = app.loaded();
  const pathOf = (name: string) => {
    const { definition } = app.directory.at(name);
    return [file, person].find((each) => each?.servers.some((own) => own === definition))?.path;
  };
  const unheld = programsOf(app.config().servers).filter((one) => one.isUnheld)
    .map(({ name }) => name);
  const servers = app.servers.states().map(({ name, kind, origin, state, why }) => ({
    name,
    kind,
    origin,
    state,
    why,
    ...(unheld.includes(name) && { confined: false }),
    path: pathOf(name),
  }));
  const lines = servers.map(({ name, kind, origin, state, path, why, confined }) => {
    const how = state === "unknown" ? "" : `, ${stateSaid({ state, why })}`;
    return `${name.padEnd(20)} ${kind.padEnd(7)} ${
      path === undefined ? origin : visible(path)
    }${how}${confined === false ? ", unconfined: nothing but Deno bounds its grants" : ""}`;
  });
  return Promise.resolve({ value: { servers }, text: lines.join("\n") });
}

/** Returns the name of a server for a package: `@scope/server-files@1` is `files`. */
function nameOf(spec: string): string {
  const bare = spec.replace(/^(@[^/]+\/)?/, "").replace(/@.*$/, "");
  if (bare !== "") {
    return serverSlug(bare.replace(/^(?:mcp-)?server-|-mcp(?:-server)?$|^mcp-/g, ""));
  }
  throw usage(`Cannot add ${quoted(spec)}: it is no package`, "Write npm:NAME or npm:@SCOPE/NAME");
}

/** Returns the headers. One that begins with a scheme is that of the authorization. */
function headersOf(texts: readonly string[] = []): Readonly<Record<string, string>> {
  const named = texts.map((text) => SCHEME.test(text) ? `Authorization: ${text}` : text);
  const headers = pairsOf(named, ":");
  for (const [name, value] of Object.entries(headers)) {
    if (value !== "" && !/^(?:Bearer|Basic)$/i.test(value)) continue;
    throw usage(
      `Cannot use the header ${quoted(name)}: it has no value`,
      "Write it in single quotes: a shell replaces ${NAME} in double quotes",
    );
  }
  return headers;
}

function pairsOf(said: readonly string[] = [], sign: string): Readonly<Record<string, string>> {
  return Object.fromEntries(said.map((one) => {
    const at = one.indexOf(sign);
    if (at > 0) return [one.slice(0, at).trim(), one.slice(at + 1).trim()];
    throw usage(
      `Cannot read ${quoted(one.slice(0, 20))}: it has no "${sign}"`,
      `Write NAME${sign}VALUE`,
    );
  }));
}
