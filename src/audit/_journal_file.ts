/**
 * One file of the journal. PML creates it, only appends to it, and detects when another program
 * moves or replaces it.
 *
 * @module
 */

import { join } from "node:path";
import { isAlive } from "../io/folder_lock.ts";
import { infoAt } from "../io/path_info.ts";
import { unlessGone } from "../io/private_files.ts";

const MOST_FILES = 512;
/** How often PML checks that the file is still at its path, in milliseconds. */
const CHECK_MS = 100;
const NAME = /^(.+-(\d+)-[0-9a-f]{8})\.(\d{4,})\.jsonl$/;

/** An open file that only grows. */
export class JournalFile {
  /** The path. */
  readonly path: string;
  readonly #file: Deno.FsFile;
  readonly #info: Deno.FileInfo;
  #checkedAt = -Infinity;
  #size = 0;

  private constructor(path: string, file: Deno.FsFile) {
    this.path = path;
    this.#file = file;
    this.#info = file.statSync();
  }

  /** Creates a new file. Throws if the path exists already, even as a link. */
  static create(path: string): JournalFile {
    // `createNew` means O_EXCL, which fails for every link, even one without a target.
    const file = new JournalFile(
      path,
      Deno.openSync(path, { append: true, createNew: true, mode: 0o600 }),
    );
    file.checkPlace();
    return file;
  }

  /** The number of bytes in the file. */
  get size(): number {
    return this.#size;
  }

  /** Appends bytes. If it cannot, restores the file and throws. */
  append(bytes: Uint8Array): void {
    try {
      for (let offset = 0; offset < bytes.length;) {
        offset += this.#file.writeSync(bytes.subarray(offset));
      }
    } catch (error) {
      // Half a record would break the hash chain of all later records.
      this.#file.truncateSync(this.#size);
      throw error;
    }
    this.#size += bytes.length;
  }

  /**
   * Throws if the path no longer leads to this file, because the records would be lost. Skips the
   * check if the last check was less than `CHECK_MS` ago.
   */
  recheckPlace(): void {
    const now = performance.now();
    if (now - this.#checkedAt < CHECK_MS) return;
    this.checkPlace();
    this.#checkedAt = now;
  }

  /** Throws if the path no longer leads to this file. */
  checkPlace(): void {
    const info = Deno.lstatSync(this.path);
    if (info.isFile && info.dev === this.#info.dev && info.ino === this.#info.ino) return;
    throw new Error(`"${this.path}" is no longer the file that was opened`);
  }

  /** Closes the file. */
  close(): void {
    this.#file.close();
  }
}

/** A file of the journal, with the facts in its name. */
export interface NamedFile {
  readonly path: string;
  /** The id of the journal: all files that one process wrote have the same. */
  readonly run: string;
  readonly pid: number;
  /** Its number among the files of that process. */
  readonly number: number;
}

/** Returns the files of the journal: the oldest process first, and its files in their order. */
export function journalFiles(folder: string): NamedFile[] {
  const entries = undefinedIfGone(() => [...Deno.readDirSync(folder)]) ?? [];
  return entries.flatMap(({ name }) => {
    const [, run, pid, number] = NAME.exec(name) ?? [];
    if (run === undefined) return [];
    return [{ path: join(folder, name), run, pid: Number(pid), number: Number(number) }];
  }).sort((a, b) => a.run === b.run ? a.number - b.number : a.run < b.run ? -1 : 1);
}

/**
 * Removes the oldest files beyond a number of bytes, except files of `keep` and of live processes.
 */
export function pruneJournal(
  folder: string,
  limits: { readonly keep: string; readonly bytes: number },
): void {
  let bytes = 0;
  for (const [newerCount, { path, run, pid }] of journalFiles(folder).reverse().entries()) {
    bytes += infoAt(path)?.size ?? 0;
    const isExcess = bytes > limits.bytes || newerCount >= MOST_FILES;
    if (isExcess && run !== limits.keep && !isAlive(pid)) removeIfThere(path);
  }
}

/** Removes a file. Another process may have removed it already. */
export function removeIfThere(path: string): void {
  undefinedIfGone(() => Deno.removeSync(path));
}

function undefinedIfGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    return unlessGone(error);
  }
}
