/**
 * One file of the journal: PML creates it, only appends to it, and notices if it is moved or
 * replaced.
 *
 * @module
 */

import { join } from "node:path";
import { isAlive } from "../io/folder_lock.ts";
import { Gathered } from "../io/lines.ts";
import { infoAt } from "../io/place.ts";
import { unlessGone } from "../io/private_files.ts";

const MOST_FILES = 512;
/** How often PML checks that the file is still at its path, in milliseconds. */
const LOOK_MS = 100;
const NAME = /^(.+-(\d+)-[0-9a-f]{8})\.(\d{4,})\.jsonl$/;

/** An open file that only grows. */
export class JournalFile {
  /** The path. */
  readonly path: string;
  readonly #file: Deno.FsFile;
  readonly #made: Deno.FileInfo;
  /** The bytes of a text while it is written, in memory that is used again. */
  readonly #bytes = new Gathered();
  #lookedAt = -Infinity;
  #size = 0;

  private constructor(path: string, file: Deno.FsFile) {
    this.path = path;
    this.#file = file;
    this.#made = file.statSync();
  }

  /** Creates a new file. Throws if the path exists already, even as a link. */
  static create(path: string): JournalFile {
    // `createNew` means O_EXCL, which follows no link, not even one to nothing.
    const made = new JournalFile(
      path,
      Deno.openSync(path, { append: true, createNew: true, mode: 0o600 }),
    );
    made.checkPlace();
    return made;
  }

  /** The number of bytes in the file. */
  get size(): number {
    return this.#size;
  }

  /** Appends a text. If it cannot, restores the file and throws. */
  append(text: string): void {
    const bytes = this.#bytes.addText(text);
    try {
      for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
    } catch (error) {
      // Half a record would break the hash chain of all later records.
      this.#file.truncateSync(this.#size);
      throw error;
    } finally {
      this.#bytes.clear();
    }
    this.#size += bytes.length;
  }

  /**
   * Throws if the path no longer leads to this file, because the records would be lost. Skips the
   * check if the last one was less than `LOOK_MS` ago.
   */
  lookAtPlace(): void {
    const now = performance.now();
    if (now - this.#lookedAt < LOOK_MS) return;
    this.checkPlace();
    this.#lookedAt = now;
  }

  /** Throws if the path no longer leads to this file. */
  checkPlace(): void {
    const info = Deno.lstatSync(this.path);
    if (info.isFile && info.dev === this.#made.dev && info.ino === this.#made.ino) return;
    throw new Error(`"${this.path}" is no longer the file that was opened`);
  }

  /** Closes the file. */
  close(): void {
    this.#file.close();
  }
}

/** A file of the journal by its name. */
export interface NamedFile {
  readonly path: string;
  /** The process that wrote it. */
  readonly run: string;
  readonly pid: number;
  /** Its number among the files of that process. */
  readonly number: number;
}

/** Returns the files of the journal: the oldest process first, and its files in their order. */
export function journalFiles(folder: string): NamedFile[] {
  const entries = ifThere(() => [...Deno.readDirSync(folder)]) ?? [];
  return entries.flatMap(({ name }) => {
    const [, run, pid, number] = NAME.exec(name) ?? [];
    if (run === undefined) return [];
    return [{ path: join(folder, name), run, pid: Number(pid), number: Number(number) }];
  }).sort((a, b) => a.run === b.run ? a.number - b.number : a.run < b.run ? -1 : 1);
}

/** Removes the oldest files beyond a number of bytes, but none of `keep` or of a living process. */
export function pruneJournal(
  folder: string,
  limits: { readonly keep: string; readonly bytes: number },
): void {
  let bytes = 0;
  for (const [newer, { path, run, pid }] of journalFiles(folder).reverse().entries()) {
    bytes += infoAt(path)?.size ?? 0;
    const over = bytes > limits.bytes || newer >= MOST_FILES;
    if (over && run !== limits.keep && !isAlive(pid)) removeIfThere(path);
  }
}

/** Removes a file. Another process may have removed it already. */
export function removeIfThere(path: string): void {
  ifThere(() => Deno.removeSync(path));
}

function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    return unlessGone(error);
  }
}
