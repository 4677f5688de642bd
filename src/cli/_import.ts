/**
 * `pml import`: copies MCP servers from the files of clients, without the keys in them.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import {
  type ImportableServer,
  type PickResult,
  type PresentServers,
  ServerPicker,
  shownDefinition,
} from "../config/client_servers.ts";
import {
  type ClientEntry,
  type ClientFile,
  clientFileExists,
  clientFiles,
  type ClientName,
  type ClientPlace,
  CLIENTS,
  readClientFile,
} from "../config/clients.ts";
import { serverText } from "../config/workspace_lines.ts";
import { moveServers } from "./_import_move.ts";
import { shellWord } from "./_shell_word.ts";
import { counted } from "../core/amounts.ts";
import { asPmlError, type PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { variableNameFrom } from "../core/secret_words.ts";
import { placeOf } from "./_client_setup.ts";
import { suggestionFor, usage } from "./_failure.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  unchanged,
} from "./_command_context.ts";
import {
  addServers,
  type FileUndo,
  findTarget,
  isInUse,
  type ServerRules,
  serversOf,
  type TargetFile,
  workspaceServers,
} from "./_undoable_edits.ts";
import { findImportUndo } from "./_import_undo.ts";
import { askOldRules, removeRules } from "./_definition_edit.ts";
import { askDoubles, denyBuiltins, type DoubleChoice, doubleOf } from "./_import_doubles.ts";
import {
  askOtherValues,
  askValues,
  type KeyedServer,
  literalLines,
  otherValueLines,
  storeValues,
  unsetKeys,
  valuesToStore,
} from "./_server_keys.ts";
import { readRules } from "./_rules.ts";
import { offerTable } from "./_table_question.ts";
import { afterDone, agrees, assertTerminal, isTerminal } from "./_terminal.ts";
import { typedPath } from "./command_process.ts";
import { tell } from "./out.ts";

/** The text if the user declined the import. */
const NOT_IMPORTED = "No server was imported";

/** The found servers, and the planned changes. */
export interface ImportPlan extends PickResult {
  readonly files: readonly ClientFile[];
  /** The path of the file that the import writes. */
  readonly into: string;
  /** The errors of files that could not be read. */
  readonly problems: readonly PmlError[];
}

/** Shows the servers that clients have, and imports those that the user agrees to. */
export async function importServers(
  context: CommandContext,
  input: CommandInput,
): Promise<CommandOutput> {
  const { words: [from], workspace = false } = input;
  const target = await findTarget(context.app, workspace);
  if (input.undo) return await undoImport(context, target, input);
  // Another import would give PML two copies of a server that the workspace's file has.
  const isOtherFileRead = input.move === true && !workspace;
  const plan = await planImport(context, { from, target, isOtherFileRead });
  const value = toJson(plan, context.app);
  const text = importText(plan, context, input.move);
  const code = plan.problems.length > 0 ? 1 : 0;
  if (input.json) return { value, code };
  const count = plan.taken.length;
  if (from === undefined) {
    const note = count === 0 && text !== ""
      ? "\nThere is nothing to import"
      : "\nImport servers with `pml import CLIENT` or `pml import FILE`";
    return { value, text: text || "No client has a configuration file here", note, code };
  }
  if (input.dryRun) return { value, text, note: "Nothing was changed", code };
  if (count === 0) return { value, code, ...await finishEarlier(context, { plan, text, input }) };
  assertTerminal("Cannot import servers");
  const these = count === 1 ? "this server" : `these ${count} servers`;
  const question = `\nImport ${these} into ${target.path}?`;
  const choice = await afterDone(
    context.signal,
    [NOT_IMPORTED],
    async () =>
      await agrees(question, context, [text]) ? await askDoubles(context, plan.taken) : undefined,
  );
  if (choice === undefined) return { ...unchanged(value), text: NOT_IMPORTED };
  if (choice.taken.length === 0) {
    const moved = await moveIfWanted(context, { ...plan, ...choice }, input);
    return { value, text: [NOT_IMPORTED, ...moved].join("\n"), note: "", code };
  }
  return { value, code, ...await importChosen(context, { plan, choice, target }, input) };
}

/** Imports the chosen servers. Asks about rules and keys before that, and about tools after it. */
async function importChosen(
  context: CommandContext,
  { plan, choice, target }: {
    readonly plan: ImportPlan;
    readonly choice: DoubleChoice;
    readonly target: TargetFile;
  },
  input: CommandInput,
): Promise<Pick<CommandOutput, "text" | "note">> {
  const { words: [from], workspace = false } = input;
  // Asks these questions before the first change, so that nothing has changed if the user stops.
  const { withoutRules, servers, names } = await afterDone(
    context.signal,
    [NOT_IMPORTED],
    async () => {
      const withoutRules = await askOldRules(context, choice.taken.map(({ name }) => name));
      const servers = await askOtherValues(context, "file", {
        taken: choice.taken,
        values: plan.values,
      });
      const withKeys = {
        taken: [...servers.taken, ...earlierImports(plan)],
        values: servers.values,
      };
      const names = await askValues(context, "file", withKeys);
      return { withoutRules, servers, names: [...servers.replaced, ...names] };
    },
  );
  const { taken, values } = servers;
  const imported = { ...plan, ...choice, taken };
  const { paths, ended } = await removeRules(context.app, withoutRules);
  const into = paths.includes(target.path) ? await findTarget(context.app, workspace) : target;
  const written = await writeImport(context, { ...choice, taken }, {
    target: into,
    workspace,
    ended,
  });
  const stored = await storeValues(context, values, names);
  const lines = [...written, ...stored.values()];
  const source = input.move ? undefined : from;
  const note = importNote(imported, { stored, app: context.app, from: source, workspace });
  const done = [...lines, note.trim()];
  const added = taken.map(({ name }) => name);
  const table = await afterDone(
    context.signal,
    done,
    async () =>
      await isInUse(context.app, await findTarget(context.app, workspace))
        ? await offerTable(context, added, workspace)
        : [trustFirst(added)],
  );
  const moved = await afterDone(context.signal, done, () => moveIfWanted(context, imported, input));
  return { text: [...lines, ...table, ...moved].join("\n"), note };
}

/** Returns the next steps for new servers in a workspace file that the user does not trust. */
function trustFirst(names: readonly string[]): string {
  return "PML does not start servers of this file until you trust it. Next: `pml trust`, then " +
    `\`pml rules table ${names.join(" ")}\` shows their tools in one table`;
}

/**
 * Returns the servers that PML has already. Their keys may be only in the client's file: the earlier
 * import was killed, or the user answered no to its question about keys.
 */
function earlierImports({ skipped }: Pick<ImportPlan, "skipped">): readonly KeyedServer[] {
  return skipped.flatMap(({ same }) => same?.isExact === true ? [same] : []);
}

/** Offers the remaining steps for servers that PML has already: to store keys, and `--move`. */
async function finishEarlier(
  context: CommandContext,
  { plan, text, input }: {
    readonly plan: ImportPlan;
    readonly text: string;
    readonly input: CommandInput;
  },
): Promise<Pick<CommandOutput, "text" | "note">> {
  const servers = { taken: earlierImports(plan), values: plan.values };
  const unstored = valuesToStore(context, servers);
  const unstoredText = unstored.length === 0
    ? ""
    : ". These keys of imported servers are not stored: " +
      `${unstored.join(", ")}; \`pml import\` on a terminal, or \`pml key set NAME\`, stores them`;
  if (unstored.length > 0 && isTerminal()) tell(text);
  const names = isTerminal() ? await askValues(context, "file", servers) : [];
  const stored = [...(await storeValues(context, plan.values, names)).values()];
  const move = async () => input.move ? await moveServers(context, plan) : [];
  const lines = [...stored, ...await afterDone(context.signal, stored, move)];
  if (lines.length > 0) return { text: lines.join("\n"), note: "" };
  const emptyText = "No client has a server to take out here";
  const { words: [from = ""], move: isMove, workspace = false } = input;
  const movable = isMove ? [] : plan.skipped.filter(({ same }) => same !== undefined);
  const next = movable.length === 0
    ? ""
    : `. Your client still starts ${
      movable.map(({ entry }) => nameOf(entry, context.app)).join(", ")
    } ` +
      `itself; \`${moveCommand(from, workspace)}\` takes ${
        movable.length === 1 ? "it" : "them"
      } out`;
  return {
    text: text || emptyText,
    note: `Nothing was changed${isTerminal() ? "" : unstoredText}${next}`,
  };
}

/** Writes the servers of an import into a file, and returns a line about each change. */
export async function writeImport(
  context: CommandContext,
  { taken, denied, doubles }: DoubleChoice,
  { target, workspace, ended = [] }: {
    readonly target: TargetFile;
    readonly workspace: boolean;
    /** The rules of earlier servers that were removed for this import. */
    readonly ended?: readonly ServerRules[];
  },
): Promise<readonly string[]> {
  const servers = taken.map(({ entry, definition }) => [entry.name, definition]);
  const summary = await addServers(context.app, target, {
    servers: Object.fromEntries(servers),
    from: [...new Set(taken.map(({ entry }) => entry.path))],
    denied,
    ended,
    doubles: doubles.map(({ name }) => name),
  });
  return [`${target.path}: ${summary}`, ...await denyBuiltins(context, { denied, workspace })];
}

/**
 * With `--move`, takes the servers out of the client's file, and returns lines about it. Otherwise
 * returns lines about the servers that the client still starts although the user chose built-in ones.
 */
async function moveIfWanted(
  context: CommandContext,
  plan: ImportPlan & Pick<DoubleChoice, "doubles">,
  { move }: CommandInput,
): Promise<readonly string[]> {
  if (move) return await moveServers(context, plan);
  return plan.doubles.map(({ entry }) =>
    `${nameOf(entry, context.app)} stays in ${entry.path}, so your client still starts it`
  );
}

async function undoImport(
  context: CommandContext,
  target: TargetFile,
  input: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const { undos, facts, servers, rules: present } = await findImportUndo(app, target);
  const shown = await revertEdits(context, undos, {
    tried: "Cannot undo the import",
    facts,
    about: { servers, rules: present },
    input,
  });
  if (shown.code !== undefined || input.json || input.dryRun) return shown;
  await app.policy.reload();
  const gone = servers.filter((name) => !app.directory.isTaken(name));
  const rules = (await Promise.all(gone.map((name) => readRules(app, name)))).flat();
  if (rules.length === 0) return shown;
  const lines = rules.map((rule) => `  ${rule}`);
  const question = "Remove these rules of the servers, too?";
  const isAgreed = await afterDone(
    context.signal,
    [shown.text ?? ""],
    () => agrees(question, context, lines),
  );
  if (!isAgreed) return shown;
  await removeRules(app, gone);
  return { ...shown, text: `${shown.text}\nRemoved ${counted(rules.length, "rule")}` };
}

/**
 * Reverts edits of files, after showing the facts and asking. `tried` is the beginning of the error
 * without a terminal. With `--json` or `--dry-run`, only shows them. The JSON has no difference of the
 * texts, because clients' files contain keys.
 */
export async function revertEdits(
  context: CommandContext,
  undos: readonly FileUndo[],
  { tried, facts = [], about = {}, input: { json, dryRun } }: {
    readonly tried: string;
    readonly facts?: readonly string[];
    /** Members of the JSON output, in addition to the files. */
    readonly about?: object;
    readonly input: Pick<CommandInput, "json" | "dryRun">;
  },
): Promise<CommandOutput> {
  const files = undos.map(({ path, summary }) => ({ path, summary }));
  const value = { ...about, files };
  if (json) return { value };
  const summary = files.map(({ summary }) => summary).join("\n");
  if (dryRun) {
    return { value, text: [...facts, summary].join("\n"), note: "Nothing was changed" };
  }
  assertTerminal(tried);
  if (!await agrees(`${summary}. Continue?`, context, facts)) return unchanged();
  const lines: string[] = [];
  for (const { run } of undos) lines.push(await run());
  return { value: {}, text: lines.join("\n") };
}

/** Reads the files of clients, and plans the import. */
export async function planImport(
  { app }: CommandContext,
  { from, target, isOtherFileRead = false }: {
    readonly from: string | undefined;
    readonly target: TargetFile;
    /** Whether to leave out the servers that the workspace's file has. */
    readonly isOtherFileRead?: boolean;
  },
): Promise<ImportPlan> {
  const place = placeOf(app);
  const files = findFiles(from, place);
  const problems: PmlError[] = [];
  const entries: ClientEntry[] = [];
  for (const file of files) {
    try {
      entries.push(...await readClientFile(file, place));
    } catch (error) {
      // The servers of the other files are shown in spite of a broken file.
      problems.push(asPmlError(error));
    }
  }
  const other = isOtherFileRead ? await workspaceServers(app) : undefined;
  const pick = await importablePick(app, entries, { ...target, other });
  return { files, into: target.path, problems, ...pick };
}

/** Picks the servers that can be added to a file. A new server may replace the server `replaced` there. */
export async function importablePick(
  app: App,
  entries: readonly ClientEntry[],
  { replaced = "", other, ...target }:
    & TargetFile
    & Pick<PresentServers, "other">
    & { readonly replaced?: string | undefined },
): Promise<PickResult> {
  const place = placeOf(app);
  // Keys of a keyring or a program count as not set until they are looked up.
  if (entries.length > 0) await app.keys.waitForOutside();
  // `plain()` first: it does not register the value of a variable that is not a key as a secret.
  const get = (name: string) =>
    app.keys.plain(name) ?? app.keys.find(name)?.value ?? place.environment.get(name);
  const { definitions: { [replaced]: _, ...definitions }, imported } = await serversOf(app, target);
  const redact = (text: string) => app.parts.redactor.redact(text);
  return new ServerPicker(place, redact, app.builtins).pick(entries, {
    definitions,
    imported,
    other,
    get,
  });
}

function findFiles(from: string | undefined, place: ClientPlace): readonly ClientFile[] {
  const clients = CLIENTS.filter((each) => from === undefined || each === from);
  const files = from === undefined || clients.length > 0
    ? clients.flatMap((each: ClientName) => clientFiles(each, place))
    : [{ client: undefined, path: typedPath(from) }];
  const existingFiles = files.filter(clientFileExists);
  if (from === undefined || existingFiles.length > 0) return existingFiles;
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

/** Returns a text about an import for the user. `isMove` is whether it also takes servers out. */
export function importText(
  { files, problems, taken, skipped }: ImportPlan,
  { app }: CommandContext,
  isMove = false,
): string {
  const moveText = "; `--move` offers to take it out of this file";
  const linesOf = (path: string) => [
    ...taken.filter(({ entry }) => entry.path === path).flatMap((each) => [
      `  take ${nameOf(each.entry, app)}${
        each.name === each.entry.name ? "" : ` as "${each.name}"`
      }: ` +
      serverText(shownDefinition(each), { isOfUser: true }),
      ...detailLines(each, app),
      ...doubleLines(each),
    ]),
    ...skipped.filter(({ entry }) => entry.path === path)
      .map(({ entry, why, same }) =>
        `  skip ${nameOf(entry, app)}: ${why}${isMove && same !== undefined ? moveText : ""}`
      ),
  ];
  return [
    ...files.flatMap(({ client, path }) => {
      const lines = linesOf(path);
      return lines.length === 0 ? [] : [`${client ?? "file"}, ${path}`, ...lines];
    }),
    ...problems.map(({ message }) => `FAIL ${message}`),
  ].join("\n");
}

function detailLines(server: ImportableServer, app: App): readonly string[] {
  const { entry, left, variables, name, definition } = server;
  const { url, headers = {}, oauth } = definition;
  const isOpen = oauth !== undefined || Object.keys(headers).length === 0;
  const port = oauth?.redirect_port;
  return [
    ...(url !== undefined && isOpen
      ? [`    if it requires a sign-in, run \`pml login ${name}\` once`]
      : []),
    ...(port === undefined ? [] : [`    its client must allow http://127.0.0.1:${port}/callback`]),
    ...variables.flatMap((variable) => {
      const { name, where, isSet } = variable;
      const source = app.parts.redactor.redact(sourceText(entry, name));
      const now = where !== undefined
        ? `; its value is in ${where}`
        : isSet
        ? ""
        : `: \`pml key set ${name}\``;
      return [
        `    it needs ${name}${source}, which is ${isSet ? "" : "not "}set${now}`,
        ...otherValueLines(app, variable).map((line) => `    ${line}`),
      ];
    }),
    ...literalLines(app, server).map((line) => `    ${line}`),
    ...settingLines(definition),
    ...left.map(({ key, why }) => `    left out: ${quoted(key)} (${why})`),
  ];
}

/**
 * Returns the reference in the client's file, in parentheses, if PML gave its variable another name;
 * otherwise "".
 */
function sourceText({ fields }: ClientEntry, name: string): string {
  const all = JSON.stringify(fields).matchAll(/\$\{(?:input|env):([\w.-]{1,60})\}/g);
  for (const [reference, variable = ""] of all) {
    if (variable !== name && variableNameFrom(variable) === name) {
      return ` (${reference} in the file)`;
    }
  }
  return "";
}

/** Returns lines about the time limit and the tools of a definition. */
function settingLines({ timeout, tools }: ImportableServer["definition"]): readonly string[] {
  const isAllowList = Array.isArray(tools);
  const names = isAllowList ? tools : Object.keys(tools ?? {});
  const list = names.map((name) => quoted(name, 200)).join(", ");
  return [
    ...timeout === undefined ? [] : [`    its calls take at most ${timeout} ms`],
    ...tools === undefined
      ? []
      : [`    ${isAllowList ? "only these tools" : "without these tools"}: ${list || "none"}`],
  ];
}

/** Returns a line for each key that shows how to set it. `then` is the text after the command. */
function keyLines(names: readonly string[] = [], then: string): string {
  return names.map((name) => `Run \`pml key set ${name}\`${then}\n`).join("");
}

/** Returns the name of a server in its client's file, quoted and without secrets. */
function nameOf({ name }: ClientEntry, app: App): string {
  return app.parts.redactor.redact(quoted(name));
}

/** Returns the command that takes the servers of an import out of the client's file. */
function moveCommand(from: string, workspace: boolean): string {
  return `pml import ${shellWord(from)} --move${workspace ? " --workspace" : ""}`;
}

function importNote(
  { taken }: ImportPlan,
  { stored, app, from, workspace }: {
    /** The lines about stored keys, by their names. */
    readonly stored: ReadonlyMap<string, string>;
    readonly app: App;
    /** The client or the file; undefined if the servers were taken out of it. */
    readonly from: string | undefined;
    /** Whether the servers are in the workspace's file now. */
    readonly workspace: boolean;
  },
): string {
  const names = unsetKeys(taken).filter((name) => !stored.has(name));
  const written = taken.flatMap(({ variables }) => variables)
    .filter(({ where }) => where !== undefined).map(({ name }) => name);
  const [inClientFile, elsewhere] = [true, false].map((isWritten) =>
    names.filter((name) => written.includes(name) === isWritten)
  );
  const keys = [
    keyLines(inClientFile, ", then remove its value from the client's file"),
    keyLines(elsewhere, ""),
  ].join("");
  const [what, them] = taken.length === 1
    ? ["this server", "it"]
    : [`these ${taken.length} servers`, "them"];
  const files = [...Map.groupBy(taken, ({ entry }) => entry.path)].map(([path, servers]) =>
    `  ${path}: ${servers.map(({ entry }) => nameOf(entry, app)).join(", ")}`
  );
  const undoing = `\`pml import --undo${workspace ? " --workspace" : ""}\` undoes the import`;
  if (from === undefined) return `\n${keys}${undoing}`;
  return `\n${keys}Your client still starts ${what} itself. \`${moveCommand(from, workspace)}\` ` +
    `takes ${them} out of:\n${files.join("\n")}\n${undoing}`;
}

function toJson(
  { files, into, problems, taken, skipped }: ImportPlan,
  app: App,
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
