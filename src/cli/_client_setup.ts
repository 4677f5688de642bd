/**
 * Connects clients: adds PML to their files after showing the change, and removes it again.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import type { App } from "../app/app.ts";
import { isPml, ServerPicker } from "../config/client_servers.ts";
import {
  type ClientEntry,
  type ClientFile,
  clientFileExists,
  clientFiles,
  clientHome,
  type ClientName,
  type ClientPlace,
  CLIENTS,
  pathRules,
  permissionFiles,
  readClientFile,
} from "../config/clients.ts";
import { FILE_NAME, pathExists } from "../config/workspace.ts";
import { isObject, quoted, textOf, visible, withoutUndefined } from "../core/json.ts";
import { withoutSecrets } from "../core/secret_words.ts";
import { serverSlug } from "../core/tool_id.ts";
import { CLAUDE_RULE, type ClientEdit, editClientText, NAME } from "./_client_file.ts";
import { canUseHttp, type ClientForm, createForm, newFileText } from "./_client_form.ts";
import { withoutServers } from "./_client_removal.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  unchanged,
} from "./_command_context.ts";
import { suggestionFor, usage } from "./_failure.ts";
import {
  canUndo,
  editFile,
  type FileUndo,
  findTarget,
  findUndo,
  readEdits,
  readTarget,
  serversOf,
  type TargetFile,
  workspaceServers,
} from "./_undoable_edits.ts";
import { agrees, assertTerminal } from "./_terminal.ts";
import { tell } from "./out.ts";

/** The result for one file: whether it was changed, and why. */
export interface SetupStep {
  readonly path: string;
  readonly changed: boolean;
  readonly message: string;
  /** The remaining task of the user. */
  readonly todo?: string;
}

/** The file of a client that is to start PML, and the edit that it needs. */
export interface ClientSetup extends TargetFile {
  readonly client: ClientName;
  readonly file: ClientFile;
  /** Whether the file applies to every workspace. */
  readonly isOwn: boolean;
  readonly form: ClientForm;
  readonly edit: ClientEdit | undefined;
}

/** The servers that a client starts itself. */
export interface ClientState {
  readonly client: ClientName;
  readonly startsPml: boolean;
  /** The names of the other servers, quoted and without secrets. */
  readonly others: readonly string[];
  /** The servers among `others` that PML has with the same definition, or has imported from it. */
  readonly imported: readonly string[];
  /** The servers among `others` that PML cannot import, with the reason. */
  readonly refused: readonly string[];
}

/** The context of a step of `pml init`. */
export interface SetupContext extends CommandContext {
  /** Whether the step may ask the user; false with `--yes`. */
  readonly mayAsk: boolean;
  /** Whether it is a dry run, which writes nothing. */
  readonly isDryRun: boolean;
}

/** The name of the edit in texts about its undo. */
const EDIT_NAME = "connecting PML";

/**
 * Returns the clients that the user named. If the user named none, returns all installed clients; for
 * HTTP, only those that can use `pml serve`.
 */
export function chooseClients(
  app: App,
  named: string | boolean,
  http = false,
): readonly ClientName[] {
  const place = placeOf(app);
  if (typeof named === "string") {
    return [...new Set(named.split(",").map((name) => findClient(name.trim())))];
  }
  const clients = CLIENTS.filter((client) =>
    isInstalled(client, place) && (!http || canUseHttp(client))
  );
  if (clients.length > 0) return clients;
  throw usage("Cannot connect a client: PML found no client that it knows", clientNames());
}

function findClient(name: string): ClientName {
  const client = CLIENTS.find((each) => each === name);
  if (client !== undefined) return client;
  const message = `Cannot connect ${quoted(name)}: PML does not know this client`;
  throw usage(suggestionFor(name, { known: CLIENTS, before: message }), clientNames());
}

function clientNames(): string {
  return `Name one of ${CLIENTS.join(", ")}, or give your client the command \`pml stdio\``;
}

/** Returns where to look for the files of clients. */
export function placeOf(app: App): ClientPlace {
  const { environment, workspace: { root } } = app.loaded();
  return { environment, root };
}

/** Returns whether a client seems to be installed: it has a file, or the folder for one. */
function isInstalled(client: ClientName, place: ClientPlace): boolean {
  const files = clientFiles(client, place);
  if (files.some(clientFileExists)) return true;
  const home = clientHome(place);
  const folders = files.filter(({ inside }) => inside === undefined).map(({ path }) =>
    dirname(path)
  );
  return [...folders, ...(client === "claude-code" ? [join(home, ".claude")] : [])]
    .some((folder) => folder !== home && pathExists(folder));
}

/**
 * Reads the file of a client to which PML is added: the file of the workspace, or of the user. Throws
 * if the file cannot be edited. Writes nothing.
 */
export async function readSetup(
  app: App,
  client: ClientName,
  { user, http, port }: {
    readonly user: boolean;
    readonly http: boolean;
    /** The port of `pml serve`. */
    readonly port?: number;
  },
): Promise<ClientSetup> {
  const place = placeOf(app);
  if (http && !canUseHttp(client)) {
    throw usage(
      `Cannot connect ${client} over HTTP: its file would hold the token`,
      "Leave out --http",
    );
  }
  const all = clientFiles(client, place);
  const shared = user ? [] : all.filter(({ inside }) => inside !== undefined);
  const files = shared.length > 0 ? shared : all.filter(({ inside }) => inside === undefined);
  const file = files.find(clientFileExists) ??
    files.find(({ path }) => pathExists(dirname(path))) ??
    files[0];
  if (file === undefined) {
    throw usage(`Cannot connect ${client}: it has no such file`, clientNames());
  }
  const { path, inside } = file;
  const isOwn = inside === undefined;
  const target = await readClientTarget(file);
  const text = target.found?.text;
  const command = isOwn ? findPmlCommand(place) : "pml";
  const form = createForm(client, {
    text,
    http,
    command,
    isOwn,
    ...withoutUndefined({ port, os: place.os }),
  });
  const edit = await editClientText(text ?? newFileText(client), path, form);
  return { ...target, client, file, isOwn, form, edit };
}

/** Reads a file of a client for an edit. Its folder need not exist. */
export async function readClientTarget({ path, inside }: ClientFile): Promise<TargetFile> {
  return pathExists(dirname(path)) ? await readTarget(path, inside) : { path, found: undefined };
}

/** Returns the full path of `pml`, because programs with a user interface often have another PATH. */
function findPmlCommand(place: ClientPlace): string {
  const { delimiter, join } = pathRules(place);
  const { environment, os = Deno.build.os } = place;
  const folders = (environment.get("PATH") ?? "").split(delimiter).filter((folder) =>
    folder !== ""
  );
  const names = os === "windows" ? ["pml.exe", "pml.cmd"] : ["pml"];
  const paths = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  return paths.find((path) => pathExists(path)) ?? "pml";
}

/** Adds PML to the file of a client, after showing the change and asking where required. */
export async function writeSetup(
  { client, path, found, isOwn, edit }: ClientSetup,
  { app, mayAsk, isDryRun, signal }: SetupContext,
): Promise<SetupStep> {
  const todo = `${client} does not start PML yet: give it the command \`pml stdio\``;
  if (edit === undefined) return { path, changed: false, message: "has PML already" };
  const { text, removed, other } = edit;
  // The user or another program wrote this entry, so PML does not replace it.
  if (other !== undefined) {
    const shown = app.parts.redactor.redact(JSON.stringify(withoutSecretValues(other)));
    const text = `left as it is: it has another server "pml": ${visible(shown, 2_000)}`;
    return { path, changed: false, message: text, todo: `${todo}, under another name` };
  }
  const isReplaced = removed.length > 0;
  const change = app.parts.redactor.redact(editText(edit));
  if (isDryRun) return { path, changed: false, message: `would get ${change}` };
  if (mayAsk && (found !== undefined || isOwn)) {
    tell(`${path} gets ${change}`);
    const question = isReplaced ? `Replace PML's entry in ${path}?` : `Add PML to ${path}?`;
    if (!await agrees(question, { signal })) {
      // The earlier entry still starts PML.
      return {
        path,
        changed: false,
        message: "left as it is",
        ...isReplaced ? {} : { todo },
      };
    }
  }
  await Deno.mkdir(dirname(path), { recursive: true });
  const mode = isOwn ? 0o600 : 0o644;
  const { backup } = await editFile(app, { path, found }, { text, mode });
  const message = backup === undefined
    ? "created, with PML as a server"
    : `PML${isReplaced ? "'s entry was replaced" : " was added"}; the file before is ${backup}`;
  return { path, changed: true, message };
}

/** Returns the lines that an edit removes and adds, with a heading that follows "gets". */
export function editText({ removed, added }: ClientEdit): string {
  const lines = [
    ...removed.map((line) => `  - ${line}`),
    ...added.map((line) => `  + ${line}`),
  ].join("\n");
  return removed.length === 0
    ? `these lines:\n${lines}`
    : `these changes (- gone, + new):\n${lines}`;
}

/** Returns an entry of a client's file without values that look like secrets, to show it. */
function withoutSecretValues(value: unknown, name = ""): unknown {
  if (typeof value === "string") return withoutSecrets(name, value);
  if (Array.isArray(value)) {
    // The value of an option follows its name.
    return value.map((item, at) => withoutSecretValues(item, textOf(value[at - 1]) || name));
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, withoutSecretValues(item, key)]),
  );
}

/** Restores the files of clients as they were before PML was added, byte for byte. */
export async function undoSetups(
  context: CommandContext,
  { yes = false, dryRun = false, client }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const clients = client === undefined ? CLIENTS : chooseClients(app, client);
  const files = filesOf(app, clients);
  const edits = await findUndos(app, files);
  const hidden = await hiddenSetups(app, files);
  const [first] = hidden.values();
  if (edits.length === 0) {
    if (first !== undefined) {
      throw usage(
        `Cannot undo: PML took servers out of ${
          [...hidden.keys()].join(", ")
        } after it added "pml"`,
        first,
      );
    }
    throw await noSetupError(
      app,
      files,
      client === undefined ? "here" : `for ${clients.join(", ")}`,
    );
  }
  if (!yes || dryRun) {
    if (!dryRun) assertTerminal("Cannot undo", "; `--yes` asks nothing");
    const facts = edits.map(({ path, summary }) =>
      hidden.has(path)
        ? `${path}: only the changes after the import are undone. ${hidden.get(path)}`
        : summary
    );
    const changed = edits.map(({ path }) => files.find((file) => file.path === path)?.client);
    if (new Set(changed).size > 1) {
      facts.push("To undo the changes of one client only, use `pml init --undo --client NAME`");
    }
    if (dryRun) {
      const value = { undone: [], hidden: [...hidden.keys()] };
      return { value, text: facts.join("\n"), note: "Nothing was changed" };
    }
    if (!await agrees("Continue?", context, facts)) return unchanged();
  }
  const { lines } = await revertSetups(app, clients);
  for (const [path, next] of hidden) {
    const done = lines.has(path)
      ? "the changes of `pml init` after the import are undone. Its first change stays: "
      : "";
    lines.set(path, `${path}: ${done}"pml" is still in it. ${next}`);
  }
  const undone = [...lines.keys()].filter((path) => !hidden.has(path));
  return {
    value: { undone, hidden: [...hidden.keys()] },
    text: [...lines.values()].join("\n"),
  };
}

/** Returns the error for files without a record. Its hint names the files that still start PML. */
async function noSetupError(app: App, files: readonly ClientFile[], scope: string) {
  const steps = await Promise.all(files.map(async (file) => {
    const { found } = await readClientTarget(file).catch(() => ({ found: undefined }));
    const part = found && await findPmlPart(file, { text: found.text, place: placeOf(app) });
    return part === undefined ? [] : [`${part} from ${file.path}`];
  }));
  const parts = steps.flat();
  return usage(
    `Cannot undo: PML has no record of a change by \`pml init\` ${scope}`,
    parts.length === 0
      ? "Run it in a project that `pml init` set up. `pml uninstall` removes the records"
      : `Remove ${parts.join(", and ")} by hand`,
  );
}

/**
 * Returns the part of a client's file that starts PML or allows its tools; undefined if there is none.
 */
export async function findPmlPart(
  file: ClientFile,
  { text, place }: { readonly text: string; readonly place: ClientPlace },
): Promise<string | undefined> {
  const entries = await readClientFile(file, place).catch(() => undefined);
  // In a file that cannot be parsed, PML cannot tell its own entry from others.
  const hasEntry = entries?.some(isPml) ?? text.includes(NAME);
  if (hasEntry) return `the entry "${NAME}"`;
  return text.includes(CLAUDE_RULE) ? `the rule "${CLAUDE_RULE}"` : undefined;
}

/** Returns the files of clients that `pml init` can change. */
export function filesOf(
  app: App,
  clients: readonly ClientName[],
  root = placeOf(app).root,
): readonly ClientFile[] {
  const place = { ...placeOf(app), root };
  return clients.flatMap((each) => [...clientFiles(each, place), ...permissionFiles(each, place)]);
}

/**
 * Reverts the edits that added PML to the files of clients. Returns a line about each changed file, and
 * the next step for each file in which a later move hides such an edit, by path.
 */
async function revertSetups(app: App, clients: readonly ClientName[]) {
  const files = filesOf(app, clients);
  const lines = new Map<string, string>();
  // A file has several edits if the client was connected again, for example over HTTP.
  for (let edits = await findUndos(app, files); edits.length > 0;) {
    for (const { path, run } of edits) lines.set(path, await run());
    edits = await findUndos(app, files);
  }
  return { lines, hidden: await hiddenSetups(app, files) };
}

/**
 * Finds the files in which a later move of servers hides the edit that added PML. Returns the next
 * steps of the user, by path.
 */
export async function hiddenSetups(
  app: App,
  files: readonly ClientFile[],
): Promise<ReadonlyMap<string, string>> {
  const targets = await Promise.all(
    files.map((file) => readClientTarget(file).catch(() => undefined)),
  );
  const next = new Map<string, string>();
  for (const { path } of targets.flatMap((target) => target === undefined ? [] : [target])) {
    const edits = readEdits(app, path);
    const first = edits.findIndex(({ isMove }) => isMove !== true);
    const move = edits.findLast(({ isMove }, index) => isMove === true && index > first);
    if (first < 0 || move === undefined) continue;
    const added = readEdits(app, app.policy.rulesFile).flatMap(({ added = [] }) => added);
    const isInWorkspace = move.moved?.some(({ name, file }) =>
      file === undefined ? added.map(serverSlug).includes(name) : basename(file) === FILE_NAME
    );
    const option = isInWorkspace === true ? " --workspace" : "";
    next.set(
      path,
      `Next: run \`pml import --undo${option}\`, which puts the servers back, and then ` +
        '`pml init --undo`, which removes "pml"',
    );
  }
  return next;
}

/** Finds the last edit of each file. Reads all files before any is written. */
async function findUndos(
  app: App,
  files: readonly ClientFile[],
): Promise<readonly FileUndo[]> {
  const targets = await Promise.all(
    files.map((file) => readClientTarget(file).catch(() => undefined)),
  );
  return await Promise.all(
    targets.flatMap((target, index) => {
      const file = files[index];
      const canRevert = file !== undefined && target !== undefined && canUndo(app, target.path);
      return canRevert ? [findSetupUndo(app, file, target)] : [];
    }),
  );
}

/** Finds the last edit of a client's file. Throws if the file cannot be changed back. */
export async function findSetupUndo(
  app: App,
  file: ClientFile,
  target: TargetFile,
): Promise<FileUndo> {
  return await findUndo(app, target, {
    editName: EDIT_NAME,
    withoutEntries: withoutPml(file, placeOf(app)),
    undoesAll: true,
    root: file.inside,
  });
}

/** Returns the function that removes exactly PML's entry from the text of a client's file. */
function withoutPml(file: ClientFile, place: ClientPlace) {
  return async (text: string) => {
    const entries = await readClientFile(file, place);
    const keys = entries.filter((entry) => isPml(entry) && entry.key[0] !== "projects")
      .map(({ key }) => key);
    // The edit may have added something else, such as a permission.
    if (keys.length === 0) throw usage("Cannot undo: it has no entry of PML", "Edit it yourself");
    return await withoutServers(text, file.path, keys);
  };
}

/** Returns the servers that clients start. Ignores unreadable files: `pml import` reports them. */
export async function readClientStates(app: App): Promise<readonly ClientState[]> {
  const place = placeOf(app);
  const { redactor } = app.parts;
  const own = findTarget(app, false).then((target) => serversOf(app, target)).catch(() => ({}));
  const existing = { ...await own, other: await workspaceServers(app) };
  const picker = new ServerPicker(place, (text) => redactor.redact(text), app.builtins);
  const states = await Promise.all(CLIENTS.map(async (client) => {
    const files = clientFiles(client, place).filter(clientFileExists);
    const read = files.map((file) => readClientFile(file, place).catch(() => []));
    const entries = (await Promise.all(read)).flat().filter(({ disabled }) => !disabled);
    const nameOf = ({ name }: ClientEntry) => redactor.redact(quoted(name));
    const others = entries.filter((entry) => !isPml(entry));
    const { skipped } = picker.pick(others, existing);
    const imported = skipped.filter(({ same }) => same !== undefined);
    const refused = skipped.filter(({ same }) => same === undefined);
    return {
      client,
      startsPml: entries.some(isPml),
      others: [...new Set(others.map(nameOf))],
      imported: [...new Set(imported.map(({ entry }) => nameOf(entry)))],
      refused: [...new Set(refused.map(({ entry, why }) => `${nameOf(entry)} (${why})`))],
    };
  }));
  return states.filter(({ startsPml, others }) => startsPml || others.length > 0);
}
