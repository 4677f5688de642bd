/**
 * Records in the PML home which servers do not answer, so that `pml doctor`, which is another
 * process, can name them.
 *
 * @module
 */

import { join } from "node:path";
import { isObject } from "../core/json.ts";
import { isAlive } from "./folder_lock.ts";
import { readCache, removeIfPossible, writeCache } from "./cache_files.ts";
import { infoAt, namesInFolder } from "./path_info.ts";

/** A server that does not answer a PML process. */
export interface UnresponsiveServer {
  readonly server: string;
  readonly pid: number;
  /** When it was noticed, in milliseconds since 1970. */
  readonly since: number;
}

/** The servers that do not answer this process. */
export class UnresponsiveServers implements Disposable {
  readonly #folder: string;
  readonly #noted = new Set<string>();

  /** Takes the PML home. */
  constructor(home: string) {
    this.#folder = folderIn(home);
  }

  /** Records whether a server answers. Ignores a failed write: only `pml doctor` reads the file. */
  set(server: string, isUnresponsive: boolean): void {
    const file = join(this.#folder, `${server}-${Deno.pid}.json`);
    if (!isUnresponsive) {
      this.#noted.delete(file);
      return removeIfPossible(file);
    }
    const note: UnresponsiveServer = { server, pid: Deno.pid, since: Date.now() };
    try {
      writeCache(file, note);
      this.#noted.add(file);
    } catch {
      // The log names the server, too.
    }
  }

  /** Removes the notes of this process. */
  [Symbol.dispose](): void {
    for (const file of this.#noted) removeIfPossible(file);
  }
}

/** Returns the servers that do not answer a running PML. Removes notes of processes that ended. */
export function unresponsiveServers(home: string): readonly UnresponsiveServer[] {
  const folder = folderIn(home);
  const names = infoAt(folder) === undefined ? [] : namesInFolder(folder);
  return names.filter((name) => name.endsWith(".json")).flatMap((name) => {
    const file = join(folder, name);
    const note = readCache(file);
    if (isNote(note) && isAlive(note.pid)) return [note];
    removeIfPossible(file);
    return [];
  });
}

function folderIn(home: string): string {
  return join(home, "unresponsive");
}

function isNote(note: unknown): note is UnresponsiveServer {
  return isObject(note) && typeof note.server === "string" && Number.isSafeInteger(note.pid) &&
    Number.isSafeInteger(note.since);
}
