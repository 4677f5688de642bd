/**
 * One file of the journal: made by us alone, appended to, and watched for being taken away.
 *
 * @module
 */

import { join } from "node:path";
import process from "node:process";
import { unlessGone } from "../io/private_files.ts";

const MOST_FILES = 512;
const NAME = /^(.+-(\d+)-[0-9a-f]{8})\.\d{4,}\.jsonl$/;

/** An open file that only grows. */
export class JournalFile {
  /** Where it is. */
  readonly path: string;
  readonly #file: Deno.FsFile;
  readonly #made: Deno.FileInfo;
  #size = 0;

  private constructor(path: string, file: Deno.FsFile) {
    this.path = path;
    this.#file = file;
    this.#made = file.statSync();
  }

  /** Makes a new file; whatever already has that name, a link too, is an error. */
  static create(path: string): JournalFile {
    // `createNew` is O_EXCL, which follows no link, not even one that points nowhere.
    const made = new JournalFile(
      path,
      Deno.openSync(path, { append: true, createNew: true, mode: 0o600 }),
    );
    made.checkPlace();
    return made;
  }

  /** How many bytes it holds. */
  get size(): number {
    return this.#size;
  }

  /** Adds a text, or leaves the file as it was and throws. */
  append(text: string): void {
    const bytes = new TextEncoder().encode(text);
    try {
      for (let at = 0; at < bytes.length;) at += this.#file.writeSync(bytes.subarray(at));
    } catch (error) {
      // Half a record would break the chain for all that follow.
      this.#file.truncateSync(this.#size);
      throw error;
    }
    this.#size += bytes.length;
  }

  /** Throws if the path no longer leads to this file: what is written then would be read by nobody. */
  checkPlace(): void {
    const found = Deno.lstatSync(this.path);
    if (found.isFile && found.dev === this.#made.dev && found.ino === this.#made.ino) return;
    throw new Error(`"${this.path}" is no longer the file that was opened`);
  }

  /** Closes it. */
  close(): void {
    this.#file.close();
  }
}

/** Removes the oldest files beyond a number of bytes, but none of `keep` or of a living process. */
export function prune(
  folder: string,
  limits: { readonly keep: string; readonly bytes: number },
): void {
  // Names begin with the time of their start.
  const names = [...Deno.readDirSync(folder)].map((entry) => entry.name).sort().reverse();
  let bytes = 0;
  let files = 0;
  for (const name of names) {
    const [, run, pid] = NAME.exec(name) ?? [];
    if (run === undefined) continue;
    const path = join(folder, name);
    bytes += ifThere(() => Deno.lstatSync(path).size) ?? 0;
    files += 1;
    const over = bytes > limits.bytes || files > MOST_FILES;
    if (over && run !== limits.keep && !lives(Number(pid))) removeIfThere(path);
  }
}

/** Removes a file; another process may have done so already. */
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

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // ESRCH: nobody has that number. EPERM: somebody else's process, which lives.
    return error instanceof Error && "code" in error && error.code !== "ESRCH";
  }
}
