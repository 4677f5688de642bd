/**
 * `pml import --move`: takes imported servers out of the files of clients, and puts them back.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import {
  type ImportableServer,
  type PickResult,
  shownDefinition,
} from "../config/client_servers.ts";
import { type ClientFile, clientFiles, CLIENTS, isThere } from "../config/clients.ts";
import { serverText } from "../config/shown.ts";
import { counted } from "../core/amounts.ts";
import { asPmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { withoutServers } from "./_client_removal.ts";
import { clientStates, placeOf, targetOf } from "./_client_setup.ts";
import type { CommandContext } from "./_command_context.ts";
import {
  canUndo,
  editFile,
  editsOf,
  type FileUndo,
  findUndo,
  type MovedServer,
  type TargetFile,
} from "./_import_file.ts";
import { agrees, needPerson } from "./_terminal.ts";

/** A server that PML has, with its entry in a client's file. */
type MovableServer = Pick<ImportableServer, "entry" | "name" | "definition" | "variables" | "left">;

/** The servers of an import, and the files that they are in. */
interface ImportedServers extends Pick<PickResult, "taken" | "skipped"> {
  readonly files: readonly ClientFile[];
  /** The servers in whose place the user wants built-in ones. */
  readonly doubles?: readonly ImportableServer[];
}

/**
 * Takes servers that PML has out of the files of clients, after showing them and asking. A server
 * whose key is only in the client's file stays. Returns a line for each file and each such server.
 */
export async function moveServers(
  at: CommandContext,
  { taken, skipped, files, doubles = [] }: ImportedServers,
): Promise<readonly string[]> {
  const { app } = at;
  const same = skipped.flatMap(({ entry, same }) => same ? [{ entry, ...same, left: [] }] : []);
  const all: readonly MovableServer[] = [...taken, ...same, ...doubles];
  if (all.length > 0) needPerson("Cannot take servers out of a client's file");
  const nameOf = ({ entry }: MovableServer) => app.parts.redactor.redact(quoted(entry.name));
  const isDouble = (one: MovableServer) => doubles.some(({ entry }) => entry === one.entry);
  // A built-in server needs no key of the server that it replaces.
  const missing = (one: MovableServer) =>
    isDouble(one) ? [] : one.variables
      .filter(({ name, isSet }) => !isSet && app.keys.find(name) === undefined)
      .map(({ name }) => name);
  const lines = all.filter((one) => missing(one).length > 0).map((one) =>
    `${nameOf(one)} stays in ${one.entry.path}: first run ${
      missing(one).map((name) => `\`pml key set ${name}\``).join(", ")
    }`
  );
  const paths: string[] = [];
  for (const file of files) {
    const own = all.filter((one) => one.entry.path === file.path && missing(one).length === 0);
    if (own.length === 0) continue;
    const shown = own.map((one) =>
      `  - ${nameOf(one)}: ${describe(one)}${isDouble(one) ? "; you chose that of PML" : ""}`
    );
    const question = `Take ${counted(own.length, "server")} out of ${file.path}?`;
    if (!await agrees(question, at, ["", file.path, ...shown])) continue;
    try {
      const target = await targetOf(file);
      const text = target.found?.text ?? "";
      const after = await withoutServers(text, file.path, own.map(({ entry }) => entry.key));
      const { backup } = await editFile(app, target, {
        text: after,
        isMove: true,
        moved: own.map(({ name, entry: { key } }) => ({ name, key })),
      });
      const count = counted(own.length, "server");
      lines.push(`${file.path}: ${count} taken out; the file before is ${backup}`);
      paths.push(file.path);
    } catch (error) {
      lines.push(`${asPmlError(error).message}: remove ${own.map(nameOf).join(", ")} by hand`);
    }
  }
  return [...lines, ...await connectLines(app, paths)];
}

/** Returns the next step for each client of these files that does not start PML. */
async function connectLines(app: App, paths: readonly string[]): Promise<readonly string[]> {
  if (paths.length === 0) return [];
  const states = await clientStates(app);
  return CLIENTS.filter((client) =>
    clientFiles(client, placeOf(app)).some(({ path }) => paths.includes(path)) &&
    !states.some((state) => state.client === client && state.startsPml)
  ).map((client) => `${client} does not start PML. Next: \`pml init --client ${client}\``);
}

/** Moves that can be undone, and the servers that stay out of a file because it was edited since. */
interface UndoableMoves {
  readonly undos: readonly FileUndo[];
  readonly lines: readonly string[];
}

/**
 * Finds the moves of servers for which `isOwn` returns true. `from` are files besides those of the
 * known clients. All files are looked at before one is written.
 */
export async function undoableMoves(
  app: App,
  isOwn: (name: string) => boolean,
  from: readonly string[] = [],
): Promise<UndoableMoves> {
  const ofClients = CLIENTS.flatMap((client) => clientFiles(client, placeOf(app)));
  const others = from.filter((path) => !ofClients.some((one) => one.path === path));
  const files = [...ofClients, ...others.map((path) => ({ client: undefined, path }))].filter(
    isThere,
  );
  const undos: FileUndo[] = [];
  const lines: string[] = [];
  for (const file of files) {
    const target = await targetOf(file).catch(() => undefined);
    if (target === undefined) continue;
    const edits = editsOf(app, target.path);
    // A move of an earlier version has no names. It counts as one of any import.
    const isOfOwn = ({ moved }: typeof edits[number]) =>
      moved === undefined || moved.some(({ name }) => isOwn(name));
    const last = edits.at(-1);
    if (last !== undefined && canUndo(app, target.path, true) && isOfOwn(last)) {
      undos.push(await undoOfMove(app, target, { moved: last.moved ?? [], isOwn }));
      continue;
    }
    const hidden = edits.flatMap(({ moved = [] }) => moved).filter(({ name }) => isOwn(name));
    if (hidden.length === 0) continue;
    const names = hidden.map(({ key }) => nameAt(app, key)).join(", ");
    lines.push(`${names}: not put back into ${target.path}, because PML edited it again since`);
  }
  return { undos, lines };
}

/** Returns the undo of a move: of all of its servers, or only of those that `isOwn` names. */
async function undoOfMove(
  app: App,
  target: TargetFile,
  { moved, isOwn }: {
    readonly moved: readonly MovedServer[];
    readonly isOwn: (name: string) => boolean;
  },
): Promise<FileUndo> {
  const rest = moved.filter(({ name }) => !isOwn(name));
  const back = moved.filter(({ name }) => isOwn(name)).map(({ key }) => nameAt(app, key));
  const part = rest.length === 0 ? undefined : {
    names: back.join(", "),
    rest,
    textOf: (before: string) => withoutServers(before, target.path, rest.map(({ key }) => key)),
  };
  return await findUndo(app, target, { what: "taking servers out", part });
}

/** Returns the name of a server as its client's file has it. */
function nameAt(app: App, key: readonly string[]): string {
  return app.parts.redactor.redact(quoted(key.at(-1) ?? ""));
}

function describe({ entry, name, definition, left, variables }: MovableServer): string {
  return serverText(shownDefinition({ entry, name, definition, left, variables }), {
    isOfUser: true,
  });
}
