/**
 * `pml import --move`: removes imported servers from the files of clients, and restores them on undo.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import {
  type ImportableServer,
  isPml,
  type PickResult,
  shownDefinition,
  type SkippedServer,
} from "../config/client_servers.ts";
import { type ClientFile, clientFileExists, clientFiles, CLIENTS } from "../config/clients.ts";
import { serverText } from "../config/workspace_lines.ts";
import { counted } from "../core/amounts.ts";
import { asPmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { revertAllSetups } from "./_all_setups.ts";
import { withoutServers } from "./_client_removal.ts";
import { placeOf, readClientStates, readClientTarget } from "./_client_setup.ts";
import type { CommandContext } from "./_command_context.ts";
import {
  canUndo,
  editFile,
  type FileUndo,
  findTarget,
  findUndo,
  isInUse,
  type MovedServer,
  readEdits,
  readTarget,
  recordPath,
  type TargetFile,
} from "./_undoable_edits.ts";
import { usage } from "./_failure.ts";
import { afterDone, agrees, assertTerminal } from "./_terminal.ts";

/** A server that PML has, with its entry in a client's file. */
type MovableServer =
  & Pick<ImportableServer, "entry" | "name" | "definition" | "variables" | "left">
  & { readonly otherPath?: string | undefined };

/** The servers of an import, and the files that define them. */
interface ImportedServers extends Pick<PickResult, "taken" | "skipped"> {
  readonly files: readonly ClientFile[];
  /** The path of PML's file to which the servers are imported. */
  readonly into: string;
  /** The servers that are not imported, because the user wants built-in ones instead. */
  readonly doubles?: readonly ImportableServer[];
}

/**
 * Removes servers that PML has from the files of clients, after showing them and asking. Keeps a
 * server whose key is only in the client's file. Returns a line for each file, and for each server that
 * stays.
 */
export async function moveServers(
  context: CommandContext,
  { taken, skipped, files, into, doubles = [] }: ImportedServers,
): Promise<readonly string[]> {
  const { app } = context;
  const same = skipped.flatMap(({ entry, same }) => same ? [{ entry, ...same, left: [] }] : []);
  const changed = same.filter(({ isChanged }) => isChanged).map(({ entry }) => entry);
  const all: readonly MovableServer[] = [...taken, ...same, ...doubles];
  if (all.length > 0) assertTerminal("Cannot take servers out of a client's file");
  const nameOf = (server: Pick<MovableServer, "entry">) => serverName(app, server);
  const isDouble = (server: MovableServer) => doubles.some(({ entry }) => entry === server.entry);
  const isUsed = await isInUse(app, await readTarget(into));
  // A built-in server needs no key and no trust of the server that it replaces.
  const stepsOf = (server: MovableServer) =>
    isDouble(server) ? [] : missingSteps(app, server, isUsed);
  const lines = [
    ...all.filter((server) => stepsOf(server).length > 0).map((server) =>
      `${nameOf(server)} stays in ${server.entry.path}: first run ${stepsOf(server).join(", ")}`
    ),
    ...skipped.filter((server) => server.same === undefined && !isPml(server.entry))
      .map((server) => `${nameOf(server)} stays in ${server.entry.path}: ${stayText(server)}`),
  ];
  const paths: string[] = [];
  for (const file of files) {
    const movable = all.filter((server) =>
      server.entry.path === file.path && stepsOf(server).length === 0
    );
    if (movable.length === 0) continue;
    const shown = movable.map((server) =>
      `  - ${nameOf(server)}: ${describe(server)}${
        isDouble(server) ? "; you chose the one of PML" : ""
      }${changed.includes(server.entry) ? `; PML's definition of it changed since the import` : ""}`
    );
    const question = `Take ${counted(movable.length, "server")} out of ${file.path}?`;
    const ask = () => agrees(question, context, ["", file.path, ...shown]);
    if (!await afterDone(context.signal, lines, ask)) continue;
    try {
      const target = await readClientTarget(file);
      const text = target.found?.text ?? "";
      const after = await withoutServers(text, file.path, movable.map(({ entry }) => entry.key));
      const { backup } = await editFile(app, target, {
        text: after,
        isMove: true,
        moved: movable.map(({ name, entry: { key }, otherPath }) => ({
          name,
          key,
          file: otherPath ?? into,
        })),
      });
      const count = counted(movable.length, "server");
      lines.push(`${file.path}: ${count} taken out; the file before is ${backup}`);
      paths.push(file.path);
    } catch (error) {
      lines.push(`${asPmlError(error).message}: remove ${movable.map(nameOf).join(", ")} by hand`);
    }
  }
  return [...lines, ...await connectLines(app, paths)];
}

/** Returns the commands without which PML cannot start a server, so that it stays with its client. */
function missingSteps(
  app: App,
  { variables, otherPath }: MovableServer,
  isUsed: boolean,
): readonly string[] {
  const keys = variables
    .filter(({ name, isSet }) => !isSet && app.keys.find(name) === undefined)
    .map(({ name }) => `\`pml key set ${name}\``);
  return isUsed || otherPath !== undefined ? keys : ["`pml trust`", ...keys];
}

/** Returns the name of a server in its client's file, quoted and without secrets. */
function serverName(app: App, { entry }: Pick<MovableServer, "entry">): string {
  return app.parts.redactor.redact(quoted(entry.name));
}

/** Returns why a server stays in a client's file, and what to do. */
function stayText({ entry: { disabled }, why, isNameTaken }: SkippedServer): string {
  if (isNameTaken === true) return `${why}. Remove one of the two, or give one another name`;
  // The client does not start a disabled server.
  return disabled ? why : `${why}. Your client still starts it itself`;
}

/** Returns the next step for each client of these files that does not start PML. */
async function connectLines(app: App, paths: readonly string[]): Promise<readonly string[]> {
  if (paths.length === 0) return [];
  const states = await readClientStates(app);
  return CLIENTS.filter((client) =>
    clientFiles(client, placeOf(app)).some(({ path }) => paths.includes(path)) &&
    !states.some((state) => state.client === client && state.startsPml)
  ).map((client) => `${client} does not start PML. Next: \`pml init --client ${client}\``);
}

/** Returns the files of the known clients, and the files `from`, that exist. */
function filesWithMoves(app: App, from: readonly string[]) {
  const ofClients = CLIENTS.flatMap((client) => clientFiles(client, placeOf(app)));
  const others = from.filter((path) => !ofClients.some((file) => file.path === path));
  return [...ofClients, ...others.map((path) => ({ client: undefined, path }))].filter(
    clientFileExists,
  );
}

/** A file out of which PML took servers. */
export interface MovedFile {
  readonly path: string;
  /** The path of the record of its edits. */
  readonly record: string;
  /** The names of the servers, quoted and without secrets. */
  readonly names: readonly string[];
}

/** Returns the files of the known clients, and of all imports, out of which PML took servers. */
export async function movedFiles(app: App): Promise<readonly MovedFile[]> {
  const files = new Map<string, MovedFile>();
  for (const file of filesWithMoves(app, await importSources(app))) {
    try {
      const { path } = await readClientTarget(file);
      const moves = readEdits(app, path).filter(({ isMove }) => isMove);
      if (moves.length === 0) continue;
      const names = moves.flatMap(({ moved = [] }) => moved).map(({ key }) => nameAt(app, key));
      files.set(path, { path, record: recordPath(app, path), names });
    } catch {
      // A file or a record that cannot be read has no undo. The question about its copy follows.
    }
  }
  return [...files.values()];
}

/** Returns the files from which imports took servers. Ignores damaged records. */
async function importSources(app: App): Promise<readonly string[]> {
  const sources = new Set<string>();
  for (const workspace of [false, true]) {
    const edits = await findTarget(app, workspace).then(({ path }) => readEdits(app, path))
      .catch(() => []);
    for (const path of edits.flatMap(({ from = [] }) => from)) sources.add(path);
  }
  return [...sources];
}

/**
 * Puts all servers that PML took out of files back into these files, and removes the entries of PML
 * from the files of clients. Calls `onLine` with a line about each change. Throws if a file was changed
 * since.
 */
export async function putServersBack(app: App, onLine: (line: string) => void): Promise<void> {
  const from = await importSources(app);
  // PML's entry may have been added before a move, after it, or both.
  const disconnect = async () => {
    for (const line of (await revertAllSetups(app)).lines) onLine(line);
    return await undoableMoves(app, () => true, from);
  };
  for (let moves = await disconnect(); moves.length > 0; moves = await disconnect()) {
    for (const { run } of moves) onLine(await run());
  }
}

/**
 * Finds the moves of servers for which `isOwn` returns true, in the files of the known clients and in
 * the files `from`. Reads all files before any is written. Throws if PML edited a file after such a
 * move.
 */
export async function undoableMoves(
  app: App,
  isOwn: (server: MovedServer) => boolean,
  from: readonly string[] = [],
): Promise<readonly FileUndo[]> {
  const undos: FileUndo[] = [];
  for (const file of filesWithMoves(app, from)) {
    const target = await readClientTarget(file).catch(() => undefined);
    if (target === undefined) continue;
    const edits = readEdits(app, target.path);
    // Earlier versions recorded moves without names. Such a move counts as part of every import.
    const isOfOwn = ({ moved }: typeof edits[number]) => moved === undefined || moved.some(isOwn);
    const last = edits.at(-1);
    if (last !== undefined && canUndo(app, target.path, true) && isOfOwn(last)) {
      undos.push(await findMoveUndo(app, target, { moved: last.moved ?? [], isOwn }));
      continue;
    }
    const hidden = edits.flatMap(({ moved = [] }) => moved).filter(isOwn);
    if (hidden.length === 0) continue;
    // Otherwise, the undo of the import would leave the servers in no file at all.
    // guard: undo-moved
    throw usage(
      `Cannot undo: PML edited ${target.path} after it took servers out of it`,
      last?.isMove === true
        ? "First undo the import of the servers that were taken out last"
        : "First run `pml init --undo`, which reverts that edit",
    );
  }
  return undos;
}

/** Returns the undo of a move: for all of its servers, or only for those with `isOwn`. */
async function findMoveUndo(
  app: App,
  target: TargetFile,
  { moved, isOwn }: {
    readonly moved: readonly MovedServer[];
    readonly isOwn: (server: MovedServer) => boolean;
  },
): Promise<FileUndo> {
  const rest = moved.filter((server) => !isOwn(server));
  const back = moved.filter(isOwn).map(({ key }) => nameAt(app, key));
  const part = rest.length === 0 ? undefined : {
    names: back.join(", "),
    rest,
    textOf: (before: string) => withoutServers(before, target.path, rest.map(({ key }) => key)),
  };
  return await findUndo(app, target, {
    editName: back.length === 0 ? "taking servers out" : `taking ${back.join(", ")} out`,
    part,
  });
}

/** Returns the name of a server in its client's file, quoted and without secrets. */
function nameAt(app: App, key: readonly string[]): string {
  return app.parts.redactor.redact(quoted(key.at(-1) ?? ""));
}

function describe({ otherPath, ...server }: MovableServer): string {
  const text = serverText(shownDefinition(server), { isOfUser: true });
  return otherPath === undefined
    ? text
    : `${text}; PML has it in ${otherPath}, so only in this workspace`;
}
