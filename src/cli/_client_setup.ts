/**
 * Connects clients: adds PML to their files after showing the change, and removes it again.
 *
 * @module
 */

import { dirname, join } from "node:path";
import type { App } from "../app/app.ts";
import { isPml, pickServers } from "../config/client_servers.ts";
import {
  type ClientEntry,
  type ClientFile,
  clientFiles,
  clientHome,
  type ClientName,
  type ClientPlace,
  CLIENTS,
  isThere,
  pathRules,
  permissionFiles,
  readClientFile,
} from "../config/clients.ts";
import { pathExists } from "../config/workspace.ts";
import { PmlError } from "../core/errors.ts";
import { defined, quoted, visible } from "../core/json.ts";
import { type ClientEdit, editClientText } from "./_client_file.ts";
import { blankOf, type ClientForm, formOf, takesHttp } from "./_client_form.ts";
import { withoutServers } from "./_client_removal.ts";
import { type CommandContext, type Shown, type Typed, unchanged } from "./_command_context.ts";
import { suggestionFor, usage } from "./_failure.ts";
import {
  canUndo,
  editFile,
  findTarget,
  findUndo,
  presentServers,
  readTarget,
  type TargetFile,
} from "./_import_file.ts";
import { agrees, askReply, needPerson } from "./_terminal.ts";
import { tell } from "./out.ts";

/** One file, whether it was changed, and why. */
export interface SetupStep {
  readonly path: string;
  readonly changed: boolean;
  readonly message: string;
  /** The remaining step for the user. */
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
  /** Those of them that PML has with the same definition. */
  readonly imported: readonly string[];
}

/** The context of a step, and whether it may ask the user. */
export interface SetupContext extends CommandContext {
  readonly ask: boolean;
  /** Whether nothing is written. */
  readonly dry: boolean;
}

const UNDONE = "connecting PML";

/**
 * Returns the clients that the user named. If none is named, these are all that are here, and that
 * can use `pml serve` if the entry is for it.
 */
export function chosenClients(
  app: App,
  named: string | boolean,
  http = false,
): readonly ClientName[] {
  const place = placeOf(app);
  if (typeof named === "string") {
    return [...new Set(named.split(",").map((name) => clientNamed(name.trim())))];
  }
  const clients = CLIENTS.filter((client) => isHere(client, place) && (!http || takesHttp(client)));
  if (clients.length > 0) return clients;
  throw usage("Cannot connect a client: PML found none of those that it knows", clientNames());
}

function clientNamed(name: string): ClientName {
  const client = CLIENTS.find((each) => each === name);
  if (client !== undefined) return client;
  const before = `Cannot connect ${quoted(name)}: PML does not know this client`;
  throw usage(suggestionFor(name, { known: CLIENTS, before }), clientNames());
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
function isHere(client: ClientName, place: ClientPlace): boolean {
  const files = clientFiles(client, place);
  if (files.some(isThere)) return true;
  const home = clientHome(place);
  const folders = files.filter(({ inside }) => inside === undefined).map(({ path }) =>
    dirname(path)
  );
  return [...folders, ...(client === "claude-code" ? [join(home, ".claude")] : [])]
    .some((folder) => folder !== home && pathExists(folder));
}

/**
 * Reads the file of a client that PML is put into: the workspace's own, or the user's. Throws if
 * it cannot be edited. Writes nothing.
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
  if (http && !takesHttp(client)) {
    throw usage(
      `Cannot connect ${client} over HTTP: its file would hold the token`,
      "Leave out --http",
    );
  }
  const all = clientFiles(client, place);
  const shared = user ? [] : all.filter(({ inside }) => inside !== undefined);
  const files = shared.length > 0 ? shared : all.filter(({ inside }) => inside === undefined);
  const file = files.find(isThere) ?? files.find(({ path }) => pathExists(dirname(path))) ??
    files[0];
  if (file === undefined) {
    throw usage(`Cannot connect ${client}: it has no such file`, clientNames());
  }
  const { path, inside } = file;
  const isOwn = inside === undefined;
  const target = await targetOf(file);
  const text = target.found?.text;
  const command = isOwn ? commandOf(place) : "pml";
  const form = formOf(client, { text, http, command, isOwn, ...defined({ port, os: place.os }) });
  const edit = await editClientText(text ?? blankOf(client), path, form);
  return { ...target, client, file, isOwn, form, edit };
}

/** Reads a file of a client that is to be edited; its folder need not exist. */
export async function targetOf({ path, inside }: ClientFile): Promise<TargetFile> {
  return pathExists(dirname(path)) ? await readTarget(path, inside) : { path, found: undefined };
}

/** Returns the whole path of `pml`, because programs with windows often have another PATH. */
function commandOf(place: ClientPlace): string {
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
  { app, ask, dry, signal }: SetupContext,
): Promise<SetupStep> {
  const todo = `${client} does not start PML yet: give it the command \`pml stdio\``;
  if (edit === undefined) return { path, changed: false, message: "has PML already" };
  const { text, added, other } = edit;
  // Another author wrote this entry. PML does not replace it.
  if (other !== undefined) {
    const text = `left as it is: it has another server "pml": ${visible(other, 2_000)}`;
    return { path, changed: false, message: text, todo: `${todo}, under another name` };
  }
  const lines = added.map((line) => `  + ${line}`);
  if (dry) return { path, changed: false, message: `would get these lines\n${lines.join("\n")}` };
  if (ask && (found !== undefined || isOwn)) {
    tell(`${path} gets these lines:\n${lines.join("\n")}`);
    const reply = await askReply(`Add PML to ${path}?`, { signal });
    if (reply === "cancelled") {
      throw new PmlError("CANCELLED", "Cannot set up: you stopped it", {
        hint: "`pml init --undo` reverts its changes",
      });
    }
    if (reply !== "Yes") return { path, changed: false, message: "left as it is", todo };
  }
  await Deno.mkdir(dirname(path), { recursive: true });
  const mode = isOwn ? 0o600 : 0o644;
  const { backup } = await editFile(app, { path, found }, { text, mode });
  const message = backup === undefined
    ? "created, with PML as a server"
    : `PML was added; the file before is ${backup}`;
  return { path, changed: true, message: message };
}

/** Puts the files of clients back as they were before PML was put into them, byte for byte. */
export async function undoSetups(
  at: CommandContext,
  { yes = false, client }: Typed,
): Promise<Shown> {
  const { app } = at;
  const place = placeOf(app);
  const clients = client === undefined ? CLIENTS : chosenClients(app, client);
  const files = clients.flatMap((each) => [
    ...clientFiles(each, place),
    ...permissionFiles(each, place),
  ]);
  let edits = await undoable(app, files);
  if (edits.length === 0) {
    throw usage("Cannot undo: `pml init` wrote no client file here", "Run it in the project");
  }
  if (!yes) {
    needPerson("Cannot undo", "; `--yes` asks nothing");
    if (!await agrees("Continue?", at, edits.map(({ said }) => said))) return unchanged();
  }
  const results = new Map<string, string>();
  // A client that was connected in another way since has several edits in its file.
  for (; edits.length > 0; edits = await undoable(app, files)) {
    for (const { path, run } of edits) results.set(path, await run());
  }
  return { value: { undone: [...results.keys()] }, text: [...results.values()].join("\n") };
}

/** Finds the last edits of files. All are looked at before one is written. */
async function undoable(app: App, files: readonly ClientFile[]) {
  const targets = await Promise.all(files.map((file) => targetOf(file).catch(() => undefined)));
  return await Promise.all(
    targets.flatMap((target, at) =>
      target && canUndo(app, target.path)
        ? [findUndo(app, target, { what: UNDONE, without: withoutPml(files[at], placeOf(app)) })]
        : []
    ),
  );
}

/** Returns the function that removes exactly PML's entry from the text of a client's file. */
function withoutPml(file: ClientFile | undefined, place: ClientPlace) {
  return file && (async (text: string) => {
    const entries = await readClientFile(file, place);
    const keys = entries.filter((entry) => isPml(entry) && entry.key[0] !== "projects")
      .map(({ key }) => key);
    // The edit may have been another one, such as a permission.
    if (keys.length === 0) throw usage("Cannot undo: it has no entry of PML", "Edit it yourself");
    return await withoutServers(text, file.path, keys);
  });
}

/** Returns the servers that clients start. `pml import` reports unreadable files. */
export async function clientStates(app: App): Promise<readonly ClientState[]> {
  const place = placeOf(app);
  const { redactor } = app.parts;
  // A file that cannot be read is reported elsewhere.
  const presentIn = (workspace: boolean) =>
    findTarget(app, workspace).then(presentServers).catch(() => ({}));
  const present = Object.assign({}, ...await Promise.all([false, true].map(presentIn)));
  const picking = {
    ...place,
    present,
    builtins: app.builtins,
    redact: (text: string) => redactor.redact(text),
  };
  const states = await Promise.all(CLIENTS.map(async (client) => {
    const files = clientFiles(client, place).filter(isThere);
    const read = files.map((file) => readClientFile(file, place).catch(() => []));
    const entries = (await Promise.all(read)).flat().filter(({ disabled }) => !disabled);
    const nameOf = ({ name }: ClientEntry) => redactor.redact(quoted(name));
    const others = entries.filter((entry) => !isPml(entry));
    const { skipped } = pickServers(others, picking);
    const imported = skipped.filter(({ same }) => same !== undefined)
      .map(({ entry }) => nameOf(entry));
    return {
      client,
      startsPml: entries.some(isPml),
      others: [...new Set(others.map(nameOf))],
      imported: [...new Set(imported)],
    };
  }));
  return states.filter(({ startsPml, others }) => startsPml || others.length > 0);
}
