/**
 * `pml uninstall`: shows PML's files on this machine, and removes them if the user agrees.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { namesInKeyring, removeFromKeyring } from "../oauth/outside_keys.ts";
import { fileSize } from "../core/amounts.ts";
import { asPmlError } from "../core/errors.ts";
import { memberOf, visible } from "../core/json.ts";
import { infoAt, isGone, isInside } from "../io/path_info.ts";
import { namesIn, unlessGone } from "../io/private_files.ts";
import { findAllSetups, type RemainingSetup, revertAllSetups } from "./_all_setups.ts";
import { readClientStates } from "./_client_setup.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { fileCopies, type FileCopy, recordPaths } from "./_file_copies.ts";
import { type MovedFile, movedFiles, putServersBack } from "./_import_move.ts";
import { agrees, assertTerminal } from "./_terminal.ts";
import type { FileUndo } from "./_undoable_edits.ts";
import { tell } from "./out.ts";

/**
 * The files that PML writes into its home, by the name before the first dot. Other files stay.
 */
const PML_FILES: Readonly<Record<string, string>> = {
  answered: "questions that were answered",
  api_key: "your PML_API_KEY",
  approved: "calls that you approved",
  backups: "copies of files of your clients, some with keys",
  cache: "answers of registries",
  capabilities: "capabilities that you saved",
  clients: "clients that used PML",
  config: "your settings, servers and rules",
  data: "data of servers",
  declared: "capabilities that servers declared",
  embedder: "the library of search by meaning",
  hub_routing: "which servers run in the cloud",
  imports: "copies for `--undo`",
  journal: "the journal of calls",
  key_sources: "where your other keys are",
  keys: "your keys",
  late_starts: "servers that did not start in time",
  unreached: "servers that could not be reached",
  lists: "lists of tools",
  locks: "locks",
  logs: "stderr of servers",
  memory: "memory of tool use",
  meta: "descriptions of modules",
  metrics_token: "the token of /metrics",
  models: "embedding models",
  names: "names of the tools of servers",
  notified: "when a notification was last shown",
  page: "the address of `pml page`",
  paused: "workspaces that you paused",
  pending: "calls that wait for you",
  pins: "servers and tools that you approved",
  processes: "running PMLs",
  read: "descriptions of tools that you read",
  replicas: "data that processes of `pml serve` share",
  sampling: "what models used today",
  sandbox: "files of running sandboxes",
  serve_token: "the token of `pml serve`",
  servers: "installed packages",
  sessions: "answers until a client disconnects",
  shown: "tools that your answers for several tools covered",
  sign_ins: "sign-ins at servers",
  signed_in: "sign-ins at servers",
  trust: "files that you trust",
  types: "types of tools",
  unresponsive: "servers that do not answer a running PML",
  usage: "counts of starts and of changes of the exposure",
  valid: "which of your files were checked",
  windows: "open windows",
};

/** The folder of copies of the user's files. */
const BACKUPS = "backups";
/** The folder of the records of edits of these files. */
const RECORDS = "imports";
/** The reasons why these folders stay. */
const KEPT_REASONS: Readonly<Record<string, string>> = {
  [BACKUPS]: "copies of your files, some with keys: remove it when you need none",
  [RECORDS]: "with it, `pml import --undo` and `pml uninstall` recognise these copies",
};
/** The reason why a file stays. */
const LEFT_REASON = "not a file of PML, or written since";

/** The things that PML keeps on this machine. */
interface Findings {
  readonly home: string;
  /** The files of PML in its home. */
  readonly ownFiles: readonly { path: string; what: string; bytes: number }[];
  /** The other files in its home. */
  readonly others: readonly string[];
  readonly keyring: readonly string[];
  /** The clients that start PML here. */
  readonly clients: readonly string[];
  /** The undos of the edits of clients' files, of all workspaces. */
  readonly undos: readonly FileUndo[];
  /** The files of clients that PML cannot change back, of all workspaces. */
  readonly remaining: readonly RemainingSetup[];
  /** The copies of the user's files, in the home and next to the files. */
  readonly copies: readonly FileCopy[];
  /** The paths of the records of edits of these files. */
  readonly records: readonly string[];
  /** The files into which PML can put servers back. */
  readonly movedFiles: readonly MovedFile[];
}

/** Shows PML's files, and removes them. */
export async function uninstall(
  context: CommandContext,
  { json }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const findings = await findAll(app);
  const { home, ownFiles, others, keyring, clients, undos, remaining, copies } = findings;
  const moved = copies.filter(({ isMove }) => isMove !== false);
  const outside = copies.filter((copy) => isOutside(copy, home));
  const value = {
    ...{ home, kept: ownFiles, keyring, others, clients },
    undone: undos.map(({ path }) => path),
    remaining: remaining.map((each) => ({
      path: each.path,
      message: textBefore(each, findings.movedFiles),
    })),
    moved: moved.map(({ path }) => path),
    copies: outside.map((copy) => ({ path: copy.path, what: textAbout(copy), bytes: copy.bytes })),
  };
  if (json) return { value };
  if (ownFiles.length + clients.length === 0) {
    return { value, text: `PML keeps nothing in ${home}` };
  }
  assertTerminal("Cannot remove the files of PML");
  for (const { path, what, bytes } of [...ownFiles, ...value.copies]) {
    tell(`${visible(path)}: ${what}, ${fileSize(bytes)}`);
  }
  tellOthers(findings);
  if (!await agrees("Remove all of this for good?", context, factsAbout(findings))) {
    return { value, text: "Nothing was removed", code: 1 };
  }
  const rest = await offerServers(context, findings);
  // Only these copies have, or may have, the servers that PML took out of the files of clients.
  const restMoved = rest.copies.filter(({ isMove }) => isMove !== false);
  const keepsMoved = restMoved.length > 0 && !await agrees(
    "Remove these copies, too?",
    context,
    restMoved.map((copy) => `${visible(copy.path)}: ${textAbout(copy)}`),
  );
  const { lines, isComplete } = await removeFindings(context, rest, keepsMoved ? restMoved : []);
  return { value, text: lines.join("\n"), code: isComplete ? 0 : 1 };
}

async function findAll(app: App): Promise<Findings> {
  const { home } = app.config();
  const ownFiles = [];
  const others: string[] = [];
  for (const name of await namesIn(home)) {
    const what = memberOf(PML_FILES, name.split(".", 1)[0] ?? "");
    const path = join(home, name);
    if (what === undefined) others.push(path);
    else ownFiles.push({ path, what, bytes: await measureBytes(path) });
  }
  const keyring = namesInKeyring(home, app.log);
  return { home, ownFiles, others, keyring, ...await findEdits(app) };
}

/** Finds the edits of the user's files, and the clients that start PML here. */
async function findEdits(app: App) {
  const states = await readClientStates(app);
  return {
    clients: states.filter(({ startsPml }) => startsPml).map(({ client }) => client),
    ...await findAllSetups(app),
    copies: await fileCopies(app),
    records: await recordPaths(app),
    movedFiles: await movedFiles(app),
  };
}

/** Offers to put servers back into the files of clients. Returns the things that remain then. */
async function offerServers(context: CommandContext, findings: Findings): Promise<Findings> {
  const { app } = context;
  if (findings.movedFiles.length === 0) return findings;
  const facts = findings.movedFiles.map(({ path, names }) =>
    `${visible(path)} had ${names.length === 0 ? "servers" : names.join(", ")} before \`--move\``
  );
  const question = "Put the servers back into these files, without PML?";
  if (!await agrees(question, context, facts)) return findings;
  let isPutBack = true;
  try {
    await putServersBack(app, tell);
  } catch (error) {
    isPutBack = false;
    tell(asPmlError(error).message);
  }
  const { copies, movedFiles, ...rest } = await findEdits(app);
  // The user has not seen newer copies.
  const seen = findings.copies.map(({ path }) => path);
  return {
    ...{ ...findings, ...rest, movedFiles: isPutBack ? movedFiles : [] },
    copies: copies.filter(({ path }) => seen.includes(path)),
  };
}

/** Returns whether a copy is next to its file. Each other copy is in the PML home. */
function isOutside({ path }: FileCopy, home: string): boolean {
  return !isInside(home, path);
}

/** Removes everything except for some copies. Returns lines about it, and whether all is removed. */
async function removeFindings(
  context: CommandContext,
  { home, ownFiles, keyring, copies, records, movedFiles }: Findings,
  keptCopies: readonly FileCopy[],
): Promise<{ readonly lines: readonly string[]; readonly isComplete: boolean }> {
  const { app } = context;
  const backFiles = movedFiles.map(({ record }) => record);
  const undone = await disconnect(app, keptCopies.length > 0 ? backFiles : []);
  // The journal has recorded the undo. It is closed here, so that no later record creates it again.
  await (await app.callPath())[Symbol.asyncDispose]();
  // The entries in the keyring go first, because the files contain their names.
  const failures: string[] = [];
  for (const name of keyring) {
    await removeFromKeyring(app, name).catch(({ message }) => failures.push(message));
  }
  // The files of these folders go one by one, because another PML may add some meanwhile.
  const folders = [join(home, BACKUPS), join(home, RECORDS)];
  const paths = ownFiles.map(({ path }) => path).filter((path) => !folders.includes(path));
  const nextFor = ({ isMove, record = "" }: FileCopy) => {
    if (isMove !== true) return "";
    return backFiles.includes(record)
      ? ". `pml import --undo` puts its servers back, or copy them from it"
      : ". Copy its servers from it by hand";
  };
  // An undo needs the record, and all copies that the record names.
  const keptRecords = keptCopies.map(({ record }) => record);
  const stays = (copy: FileCopy) =>
    keptCopies.includes(copy) || copy.record !== undefined && keptRecords.includes(copy.record);
  for (const copy of copies) {
    // guard: uninstall-kept
    if (stays(copy)) continue;
    paths.push(copy.path);
  }
  paths.push(...records.filter((path) => !keptRecords.includes(path)), join(home, "journal"));
  failures.push(...await removeAll(paths));
  for (const folder of folders) {
    if ((await namesIn(folder)).length === 0) failures.push(...await removeAll([folder]));
  }
  // Another PML may have written files that the user has not seen.
  const names = await namesIn(home);
  if (names.length === 0) await Deno.remove(home).catch(unlessGone);
  const reasonOf = (name: string) => keptCopies.length > 0 && KEPT_REASONS[name] || LEFT_REASON;
  const lines = [
    ...failures,
    ...undone,
    "Removed",
    ...names.map((name) => `Left: ${visible(join(home, name))} (${reasonOf(name)})`),
    ...copies.filter((copy) => stays(copy) && infoAt(copy.path) !== undefined)
      .map((copy) => `Left: ${visible(copy.path)} (${textAbout(copy)})${nextFor(copy)}`),
    "Remove the program: deno uninstall -g pml, or npm uninstall -g @casys/pml",
  ];
  return { lines, isComplete: failures.length === 0 };
}

/**
 * Removes PML from the files of clients. Returns lines about it. `backRecords` are the records with
 * which `pml import --undo` can put servers back later.
 */
async function disconnect(app: App, backRecords: readonly string[]): Promise<readonly string[]> {
  const { lines, remaining } = await revertAllSetups(app);
  const remainingLines = remaining.map(({ path, record, message, next }) => {
    const canPutBack = next !== undefined && backRecords.includes(record);
    return `${visible(path)}: ${canPutBack ? `"pml" is still in it. ${next}` : message}`;
  });
  return [...lines, ...remainingLines];
}

/** Returns the text about a file that PML cannot change back, before everything is removed. */
function textBefore(
  { message, next, record }: RemainingSetup,
  movedFiles: readonly MovedFile[],
): string {
  if (next === undefined) return message;
  return movedFiles.some((file) => file.record === record)
    ? '"pml" stays in it, unless PML puts its servers back: PML asks about this next'
    : '"pml" stays in it, because PML took servers out of it later. To undo both, go to its ' +
      `project first. ${next}`;
}

/** Returns the facts for the question. */
function factsAbout({ copies, movedFiles }: Findings): readonly string[] {
  const offered = movedFiles.map(({ record }) => record);
  return [
    "Your projects keep .pml.json and pml.lock",
    "Before you answer yes, close the clients that start PML, and end `pml serve` and `pml page`",
    ...copies.filter(({ isMove }) => isMove !== false).map((copy) => {
      const { path, isMove, record = "" } = copy;
      const next = isMove === undefined
        ? ""
        : offered.includes(record)
        ? ". PML asks next whether to put the servers back"
        : ". Run `pml import --undo` in its project first to put the servers back";
      return `${visible(path)}: ${textAbout(copy)}${next}`;
    }),
  ];
}

/** Returns a text about a copy. */
function textAbout({ isMove, hasKey }: FileCopy): string {
  const text = isMove === undefined
    ? "a copy without a record, which may have servers that no other file has"
    : `the file before PML ${isMove ? "took servers out of it" : "changed it"}`;
  return `${hasKey ? "with a key, " : ""}${text}`;
}

/** Shows the names of keys in the keyring, the clients that start PML, and changes of their files. */
function tellOthers({ keyring, clients, undos, remaining, movedFiles }: Findings): void {
  if (keyring.length > 0) tell(`In the keyring: ${keyring.join(", ")}`);
  if (clients.length > 0) tell(`These clients start PML here: ${clients.join(", ")}`);
  for (const { summary } of undos) tell(summary);
  for (const each of remaining) tell(`${visible(each.path)}: ${textBefore(each, movedFiles)}`);
}

/** Removes files and folders. Returns the messages of the failures. */
async function removeAll(paths: readonly string[]): Promise<readonly string[]> {
  const failures: string[] = [];
  for (const path of paths) {
    await Deno.remove(path, { recursive: true }).catch((error) => {
      if (!isGone(error)) failures.push(error.message);
    });
  }
  return failures;
}

/** Returns the bytes of a file or a folder. Files that another PML removes meanwhile count 0. */
async function measureBytes(path: string): Promise<number> {
  const { isDirectory = false, size = 0 } = infoAt(path) ?? {};
  if (!isDirectory) return size;
  let bytes = 0;
  for (const name of await namesIn(path)) bytes += await measureBytes(join(path, name));
  return bytes;
}
