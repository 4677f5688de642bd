/**
 * Undoes `pml init` in the clients' files of all workspaces, for `pml uninstall`.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import type { App } from "../app/app.ts";
import { type ClientFile, CLIENTS } from "../config/clients.ts";
import { FILE_NAME, pathExists } from "../config/workspace.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { textOf } from "../core/json.ts";
import { realPathOf } from "../io/path_info.ts";
import { NAME } from "./_client_file.ts";
import {
  filesOf,
  findPmlPart,
  findSetupUndo,
  hiddenSetups,
  placeOf,
  readClientTarget,
} from "./_client_setup.ts";
import { recordPaths, recordsAt } from "./_file_copies.ts";
import { canUndo, type FileUndo, findTarget, recordPath } from "./_undoable_edits.ts";

/** The part of a file that PML could not read: its entry, or a rule for it. */
const ANY_PART = `"${NAME}"`;

/** A client's file that PML cannot change back. */
export interface RemainingSetup {
  readonly path: string;
  /** The path of the record of its edits. */
  readonly record: string;
  /** The reason, and the remaining task of the user. */
  readonly message: string;
  /** Set if a later move of servers hides the change: the commands that undo both. */
  readonly next?: string | undefined;
}

/** The undo of the last edit of a client's file, and the task that remains after it. */
interface SetupState {
  readonly undo?: FileUndo;
  readonly remaining?: RemainingSetup;
}

/** Returns the undos that `revertAllSetups()` begins with, and the files that it cannot change back. */
export async function findAllSetups(app: App) {
  const files = await changedFiles(app);
  const states = await Promise.all(files.map((file) => stateOf(app, file)));
  return {
    undos: states.flatMap(({ undo = [] }) => undo),
    remaining: states.flatMap(({ remaining = [] }) => remaining),
  };
}

/**
 * Reverts the edits that added PML to the files of clients. A file that cannot be changed back stays as
 * it is. Returns a line about each changed file, and the files that still have such an edit.
 */
export async function revertAllSetups(app: App) {
  const lines = new Map<string, string>();
  const remaining: RemainingSetup[] = [];
  for (const file of await changedFiles(app)) {
    let state = await stateOf(app, file);
    try {
      // A file has several edits if the client was connected again, for example over HTTP.
      while (state.undo !== undefined) {
        lines.set(state.undo.path, await state.undo.run());
        state = await stateOf(app, file);
      }
    } catch (error) {
      const { path } = file;
      const message = `${asPmlError(error).message}: remove ${ANY_PART} from it by hand`;
      state = { remaining: { path, record: recordPath(app, path), message } };
    }
    if (state.remaining !== undefined) remaining.push(state.remaining);
  }
  return { lines: [...lines.values()], remaining };
}

/**
 * Returns the files of clients for the user and the current workspace, and those of all other
 * workspaces that have a record, each by its real path.
 */
async function changedFiles(app: App): Promise<readonly ClientFile[]> {
  const records = await recordPaths(app);
  const files = new Map<string, ClientFile>();
  const add = (file: ClientFile) => {
    const path = realPath(file.path);
    if (!files.has(path)) files.set(path, { ...file, path });
  };
  const addRecorded = (root: string) => {
    for (const file of filesOf(app, CLIENTS, root)) {
      if (records.includes(recordPath(app, realPath(file.path)))) add(file);
    }
  };
  for (const file of filesOf(app, CLIENTS)) add(file);
  // Records of earlier versions have no path. Their workspaces usually have a trusted file.
  for (const { path } of await app.policy.store.list()) addRecorded(dirname(path));
  const own = await findTarget(app, false);
  for (const record of records) {
    const path = textOf(recordsAt(record).at(-1)?.path);
    // A record with another path is not valid.
    if (`${sha256(path)}.json` !== basename(record)) continue;
    if (path === own.path || basename(path) === FILE_NAME) continue;
    // Clients have files in the folder of a project, and in the folders in it.
    for (const root of [dirname(dirname(path)), dirname(path)]) addRecorded(root);
    // The folder may be a link now. `stateOf()` compares the real path.
    if (!files.has(path)) files.set(path, { client: undefined, path });
  }
  return [...files.values()].sort((a, b) => a.path < b.path ? -1 : 1);
}

/** Returns the real path of a file that may not exist, but does not follow the file itself. */
function realPath(path: string): string {
  return join(realPathOf(dirname(path)), basename(path));
}

/** Finds the undo of the last edit of a file, and the task that remains after all undos. */
async function stateOf(app: App, file: ClientFile): Promise<SetupState> {
  const { path } = file;
  const record = recordPath(app, path);
  const isRecorded = recordsAt(record).some(({ isMove }) => isMove !== true);
  const remain = (message: string) => ({ remaining: { path, record, message } });
  if (!pathExists(dirname(path))) {
    const step = `If you moved it, remove ${ANY_PART} from the file there`;
    return isRecorded ? remain(`its folder is gone. ${step}`) : {};
  }
  const byHand = (reason: string, part = ANY_PART) =>
    remain(`${reason}: remove ${part} from it by hand`);
  const target = await readClientTarget(file).catch(asPmlError);
  if (target instanceof PmlError || target.path !== path) {
    return isRecorded ? byHand("it is behind a link, or PML cannot read it") : {};
  }
  if (target.found === undefined) return {};
  const part = await findPmlPart(file, { text: target.found.text, place: placeOf(app) });
  try {
    const undo = canUndo(app, path) ? await findSetupUndo(app, file, target) : undefined;
    const next = (await hiddenSetups(app, [file])).get(path);
    const hidden = next === undefined
      ? {}
      : { remaining: { path, record, next, message: `remove ${part ?? ANY_PART} from it` } };
    if (undo !== undefined) return { undo, ...hidden };
    if (next !== undefined) return hidden;
  } catch {
    return part === undefined ? {} : byHand("it was changed since", part);
  }
  return part === undefined ? {} : byHand("PML has no record of adding it", part);
}
