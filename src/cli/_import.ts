/**
 * `pml import`: copies MCP servers from the files of clients, without the keys in them.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import {
  type ImportableServer,
  type PickResult,
  pickServers,
  shownDefinition,
} from "../config/client_servers.ts";
import {
  type ClientEntry,
  type ClientFile,
  clientFiles,
  type ClientName,
  type ClientPlace,
  CLIENTS,
  isThere,
  readClientFile,
} from "../config/clients.ts";
import { serverText } from "../config/shown.ts";
import { moveServers } from "./_import_move.ts";
import { shellWord } from "./_shell_word.ts";
import { asPmlError, type PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { placeOf } from "./_client_setup.ts";
import { suggestionFor, usage } from "./_failure.ts";
import { type CommandContext, type Shown, type Typed, unchanged } from "./_command_context.ts";
import {
  addServers,
  type FileUndo,
  findTarget,
  presentServers,
  type TargetFile,
} from "./_import_file.ts";
import { importUndo } from "./_import_undo.ts";
import { askDoubles, denyBuiltins, type DoubleChoice, doubleOf } from "./_import_doubles.ts";
import { saveKey } from "./_key.ts";
import { offerTable } from "./_table_question.ts";
import { agrees, askReply, needPerson } from "./_terminal.ts";
import { typedPath } from "./command_process.ts";
import { tell } from "./out.ts";

/** The text of an import that the user declined. */
const NOT_IMPORTED = "No server was imported";

/** The found servers, and the planned changes. */
interface ImportPlan extends PickResult {
  readonly files: readonly ClientFile[];
  /** The errors of files that could not be read. */
  readonly problems: readonly PmlError[];
}

/** Shows the servers that clients have, and imports those that the user agrees to. */
export async function importServers(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words: [from], workspace = false } = typed;
  const target = await findTarget(at.app, workspace);
  if (typed.undo) return await undoImport(at, target);
  const plan = await planOf(at, { from, target });
  const value = valueOf(plan, { into: target.path, app: at.app });
  const text = textOf(plan, at);
  const code = plan.problems.length > 0 ? 1 : 0;
  if (typed.json) return { value, code };
  if (from === undefined) {
    const note = "\nImport servers with `pml import CLIENT` or `pml import FILE`";
    return { value, text: text || "No client has a configuration file here", note, code };
  }
  const count = plan.taken.length;
  if (typed.move && !typed.dryRun && count === 0) {
    const lines = await moveServers(at, plan);
    return { value, text: lines.join("\n") || text, note: "", code };
  }
  if (typed.dryRun || count === 0) {
    return { value, text, note: "Nothing was changed", code };
  }
  needPerson("Cannot import servers");
  const these = count === 1 ? "this server" : `these ${count} servers`;
  const question = `\nImport ${these} into ${target.path}?`;
  if (!await agrees(question, at, [text])) return { ...unchanged(value), text: NOT_IMPORTED };
  const choice = await askDoubles(at, plan.taken);
  if (choice === undefined) return { ...unchanged(value), text: NOT_IMPORTED };
  const { taken, denied, doubles } = choice;
  if (taken.length === 0) {
    const rest = await restOf(at, { ...plan, ...choice }, typed);
    return { value, text: [NOT_IMPORTED, ...rest].join("\n"), note: "", code };
  }
  const servers = taken.map(({ entry, definition }) => [entry.name, definition]);
  const summary = await addServers(at.app, target, {
    servers: Object.fromEntries(servers),
    from: [...new Set(taken.map(({ entry }) => entry.path))],
    denied,
    doubles: doubles.map(({ name }) => name),
  });
  const rules = await denyBuiltins(at, { denied, workspace });
  const imported = { ...plan, taken, doubles };
  const kept = await keepValues(at, imported, { source: "as the client's file has it" });
  const table = await offerTable(at, taken.map(({ name }) => name), workspace);
  const moved = await restOf(at, imported, typed);
  const lines = [`${target.path}: ${summary}`, ...rules, ...kept.values(), ...table, ...moved];
  const source = typed.move ? undefined : from;
  const note = noteOf(imported, { lines: kept, app: at.app, from: source, workspace });
  return { value, text: lines.join("\n"), note, code };
}

/**
 * Takes the servers out of the client's file with `--move`. Returns lines about that, or about the
 * servers that stay there in spite of the user's choice of built-in ones.
 */
async function restOf(
  at: CommandContext,
  plan: ImportPlan & Pick<DoubleChoice, "doubles">,
  { move }: Typed,
): Promise<readonly string[]> {
  if (move) return await moveServers(at, plan);
  return plan.doubles.map(({ entry }) =>
    `${nameOf(entry, at.app)} stays in ${entry.path}, so your client still starts it`
  );
}

/**
 * Offers to keep the keys that were taken out of definitions. `source` is the place where they were.
 * With `replaces`, also those of which PML has another value. Returns a line for each key that is
 * kept.
 */
export async function keepValues(
  at: CommandContext,
  { taken, values }: Pick<ImportPlan, "taken" | "values">,
  { source, replaces = false }: { readonly source: string; readonly replaces?: boolean },
): Promise<ReadonlyMap<string, string>> {
  const kept = new Map<string, string>();
  const names = unsetIn(taken).filter((name) => {
    const key = at.app.keys.find(name);
    return values.has(name) &&
      (key === undefined || replaces && key.value !== values.get(name));
  });
  if (names.length === 0) return kept;
  const old = names.filter((name) => at.app.keys.find(name) !== undefined);
  const instead = old.length === 0 ? "" : `It replaces the present value of ${old.join(", ")}. `;
  const question = `${instead}Keep ${names.join(", ")} for PML, ${source}?`;
  const [first] = old;
  if (first !== undefined) {
    tell(
      `To keep both values, answer no, run \`pml key set OTHER\`, and add the server again with ` +
        `\`--replace --env '${first}=\${OTHER}'\``,
    );
  }
  if (await askReply(question, at) !== "Yes") return kept;
  for (const name of names) {
    const { text = "" } = await saveKey(at, name, values.get(name) ?? "");
    kept.set(name, text);
    at.app.keys.find(name);
  }
  // A key in the keyring counts as not set until it is looked up.
  await at.app.keys.looked();
  return kept;
}

function unsetIn(taken: ImportPlan["taken"]): readonly string[] {
  const open = taken.flatMap(({ variables }) => variables).filter(({ isSet }) => !isSet);
  return [...new Set(open.map(({ name }) => name))];
}

async function undoImport(at: CommandContext, target: TargetFile): Promise<Shown> {
  const { undos, facts } = await importUndo(at.app, target);
  return await revert(at, undos, { tried: "Cannot undo the import", facts });
}

/**
 * Reverts edits of files, after it showed the facts and asked. `tried` is for the error without a
 * terminal.
 */
export async function revert(
  at: CommandContext,
  undos: readonly FileUndo[],
  { tried, facts = [] }: { readonly tried: string; readonly facts?: readonly string[] },
): Promise<Shown> {
  needPerson(tried, "");
  const summary = undos.map(({ said }) => said).join("\n");
  if (!await agrees(`${summary}. Continue?`, at, facts)) return unchanged();
  const lines: string[] = [];
  for (const { run } of undos) lines.push(await run());
  return { value: {}, text: lines.join("\n") };
}

async function planOf(
  { app }: CommandContext,
  { from, target }: { readonly from: string | undefined; readonly target: TargetFile },
): Promise<ImportPlan> {
  const place = placeOf(app);
  const files = filesOf(from, place);
  const problems: PmlError[] = [];
  const entries: ClientEntry[] = [];
  for (const file of files) {
    try {
      entries.push(...await readClientFile(file, place));
    } catch (error) {
      // One broken file must not hide the others.
      problems.push(asPmlError(error));
    }
  }
  return { files, problems, ...await importablePick(app, entries, target) };
}

/** Picks the servers that can be put into a file. The server `replaced` will not be in it. */
export async function importablePick(
  app: App,
  entries: readonly ClientEntry[],
  { replaced = "", ...target }: TargetFile & { readonly replaced?: string | undefined },
): Promise<PickResult> {
  const { [replaced]: _, ...present } = await presentServers(target);
  return pickServers(entries, {
    ...placeOf(app),
    redact: (text) => app.parts.redactor.redact(text),
    present,
    builtins: app.builtins,
  });
}

function filesOf(from: string | undefined, place: ClientPlace): readonly ClientFile[] {
  const named = CLIENTS.filter((each) => from === undefined || each === from);
  const files = from === undefined || named.length > 0
    ? named.flatMap((each: ClientName) => clientFiles(each, place))
    : [{ client: undefined, path: typedPath(from) }];
  const there = files.filter(isThere);
  if (from === undefined || there.length > 0) return there;
  throw usage(
    `Cannot import: there is no file ${files.map(({ path }) => path).join(", ")}`,
    suggestionFor(from, {
      known: CLIENTS,
      otherwise: `Name a file, or one of ${CLIENTS.join(", ")}`,
    }),
  );
}

/** Returns a line for a server that does the same as a built-in one. */
function doubleLines(server: Pick<ImportPlan["taken"][number], "definition">): readonly string[] {
  const builtin = doubleOf(server);
  return builtin === undefined
    ? []
    : [`    does the same as ${quoted(builtin)}, which comes with PML`];
}

function textOf({ files, problems, taken, skipped }: ImportPlan, { app }: CommandContext): string {
  const of = (path: string) => [
    ...taken.filter(({ entry }) => entry.path === path).flatMap((each) => [
      `  take ${nameOf(each.entry, app)}${
        each.name === each.entry.name ? "" : ` as "${each.name}"`
      }: ` +
      serverText(shownDefinition(each), { isOfUser: true }),
      ...detailsOf(each),
      ...doubleLines(each),
    ]),
    ...skipped.filter(({ entry }) => entry.path === path)
      .map(({ entry, why }) => `  skip ${nameOf(entry, app)}: ${why}`),
  ];
  return [
    ...files.flatMap(({ client, path }) => {
      const lines = of(path);
      return lines.length === 0 ? [] : [`${client ?? "file"}, ${path}`, ...lines];
    }),
    ...problems.map(({ message }) => `FAIL ${message}`),
  ].join("\n");
}

function detailsOf({ left, variables, name, definition }: ImportableServer): readonly string[] {
  const { url, headers = {}, oauth } = definition;
  const isOpen = oauth !== undefined || Object.keys(headers).length === 0;
  const port = oauth?.redirect_port;
  return [
    ...(url !== undefined && isOpen
      ? [`    if it requires a sign-in, run \`pml login ${name}\` once`]
      : []),
    ...(port === undefined ? [] : [`    its client must allow http://127.0.0.1:${port}/callback`]),
    ...variables.flatMap(({ name, where, isSet }) => {
      const now = where === undefined ? "" : `; its value is in ${where}`;
      return [`    it needs ${name}, which is ${isSet ? "" : "not "}set${now}`];
    }),
    ...settingLines(definition),
    ...left.map(({ key, why }) => `    left out: ${quoted(key)} (${why})`),
  ];
}

/** Returns lines about the time limit and the tools of a definition. */
function settingLines({ timeout, tools }: ImportableServer["definition"]): readonly string[] {
  const isOnly = Array.isArray(tools);
  const names = isOnly ? tools : Object.keys(tools ?? {});
  const list = names.map((name) => quoted(name, 200)).join(", ");
  return [
    ...timeout === undefined ? [] : [`    its calls take at most ${timeout} ms`],
    ...tools === undefined
      ? []
      : [`    ${isOnly ? "only these tools" : "without these tools"}: ${list || "none"}`],
  ];
}

/** Returns a line that shows how to set keys; nothing without a key. */
function keyLine(names: readonly string[] = [], then: string): string {
  return names.map((name) => `Run \`pml key set ${name}\`${then}\n`).join("");
}

/** Returns the name of a server as its client has it. */
function nameOf({ name }: ClientEntry, app: App): string {
  return app.parts.redactor.redact(quoted(name));
}

function noteOf(
  { taken }: ImportPlan,
  { lines, app, from, workspace }: {
    readonly lines: ReadonlyMap<string, string>;
    readonly app: App;
    /** The client or the file; undefined if the servers were taken out of it. */
    readonly from: string | undefined;
    /** Whether the servers are in the workspace's file now. */
    readonly workspace: boolean;
  },
): string {
  const names = unsetIn(taken).filter((name) => !lines.has(name));
  const inFile = taken.flatMap(({ variables }) => variables)
    .filter(({ where }) => where !== undefined).map(({ name }) => name);
  const [written, elsewhere] = [true, false].map((isWritten) =>
    names.filter((name) => inFile.includes(name) === isWritten)
  );
  const keys = [
    keyLine(written, ", then remove its value from the client's file"),
    keyLine(elsewhere, ""),
  ].join("");
  const [what, them] = taken.length === 1
    ? ["this server", "it"]
    : [`these ${taken.length} servers`, "them"];
  const files = [...Map.groupBy(taken, ({ entry }) => entry.path)].map(([path, own]) =>
    `  ${path}: ${own.map(({ entry }) => nameOf(entry, app)).join(", ")}`
  );
  const undoing = `\`pml import --undo${workspace ? " --workspace" : ""}\` undoes the import`;
  if (from === undefined) return `\n${keys}${undoing}`;
  return `\n${keys}Your client still starts ${what} itself. \`pml import ${
    shellWord(from)
  } --move\` ` +
    `takes ${them} out of:\n${files.join("\n")}\n${undoing}`;
}

function valueOf(
  { files, problems, taken, skipped }: ImportPlan,
  { into, app }: { readonly into: string; readonly app: CommandContext["app"] },
): unknown {
  const from = ({ client, path, name }: ClientEntry) => ({
    name: app.parts.redactor.redact(name),
    client,
    path,
  });
  return {
    path: into,
    files: files.map(({ client, path }) => ({ client, path })),
    problems: problems.map(({ message }) => message),
    take: taken.map(({ entry, name, definition, left, variables }) => ({
      ...from(entry),
      as: name,
      same_as: doubleOf({ definition }),
      definition,
      left,
      variables,
    })),
    skip: skipped.map(({ entry, why }) => ({ ...from(entry), why })),
  };
}
