/**
 * The open files of a module. The broker checks access when it opens a file.
 *
 * @module
 */

import { refusalOf, type WriteBudget } from "./refusal.ts";

/** Runs one request with the arguments that the Worker sent. */
// deno-lint-ignore no-explicit-any -- a Worker can send any value: each step checks its values
export type Op = (...args: any[]) => unknown;

/** A file, and how it was opened. */
export interface OpenFile {
  readonly file: Deno.FsFile;
  /** The path as the module gave it. */
  readonly requestedPath: string;
  readonly write: boolean;
  readonly append: boolean;
}

/** The maximum number of open files, and of bytes of one read. */
const OPEN_MAX = 256;
const READ_MAX = 1 << 22;

/** The open files of one Worker. */
export class OpenFiles {
  readonly #budget: WriteBudget;
  readonly #files = new Map<number, OpenFile>();
  #last = 0;

  /** The requests on open files; the first argument is the file's number. */
  readonly ops: Readonly<Record<string, Op>> = {
    "file.read": (file, length) => {
      const bytes = new Uint8Array(Math.min(Math.max(Number(length) || 0, 0), READ_MAX));
      const read = this.#get(file).file.readSync(bytes);
      return read === null ? null : bytes.subarray(0, read);
    },
    "file.write": (file, bytes) => this.#write(this.#get(file), copyBytes(bytes)),
    "file.seek": (file, offset, whence) => this.#get(file).file.seekSync(offset, whence),
    "file.stat": (file) => this.#get(file).file.statSync(),
    "file.truncate": (file, length) => {
      const { file: fsFile, requestedPath } = this.#get(file);
      resize(fsFile, { length, requestedPath, budget: this.#budget });
    },
    "file.sync": (file) => this.#get(file).file.syncSync(),
    "file.syncData": (file) => this.#get(file).file.syncDataSync(),
    "file.utime": (file, access, change) => {
      const { file: fsFile, requestedPath, write } = this.#get(file);
      // The system checks only the owner of the file, so without this check a read grant would
      // allow changes of the times.
      const why = "it was opened to be read only";
      if (!write) {
        throw refusalOf("SANDBOX_DENIED", { op: "change the times of", requestedPath }, why);
      }
      fsFile.utimeSync(access, change);
    },
    "file.tryLock": (file, exclusive) => this.#get(file).file.tryLockSync(exclusive === true),
    "file.unlock": (file) => this.#get(file).file.unlockSync(),
    "file.close": (file) => {
      this.#get(file).file.close();
      this.#files.delete(file);
    },
  };

  /** Creates an instance with the budget that counts written bytes. */
  constructor(budget: WriteBudget) {
    this.#budget = budget;
  }

  /** Adds a file and returns its number. */
  add(opened: OpenFile): number {
    if (this.#files.size >= OPEN_MAX) {
      opened.file.close();
      throw new Error(`Too many open files: a module can hold ${OPEN_MAX}`);
    }
    this.#files.set(++this.#last, opened);
    return this.#last;
  }

  #get(number: number): OpenFile {
    const opened = this.#files.get(number);
    if (opened === undefined) throw new Deno.errors.BadResource("Bad resource ID");
    return opened;
  }

  #write({ file, requestedPath, write, append }: OpenFile, bytes: Uint8Array): number {
    if (write) {
      // If the position is beyond the end of the file, the gap counts, too.
      const gap = append ? 0 : file.seekSync(0, Deno.SeekMode.Current) - file.statSync().size;
      this.#budget.take(bytes.length + Math.max(gap, 0), { op: "write", requestedPath });
    }
    return file.writeSync(bytes);
  }
}

/** Returns bytes that the Worker can no longer change, even if it sent shared memory. */
export function copyBytes(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new TypeError("the content must be bytes");
  return value.buffer instanceof SharedArrayBuffer ? new Uint8Array(value) : value;
}

/** Writes all bytes, in as many calls as needed. */
export function writeAll(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
}

/** Truncates or extends a file. Growth counts as written bytes. */
export function resize(
  file: Deno.FsFile,
  to: { readonly length: unknown; readonly requestedPath: string; readonly budget: WriteBudget },
): void {
  const growth = Number(to.length ?? 0) - file.statSync().size;
  // NaN is not more than 0; Deno itself refuses it below.
  if (growth > 0) to.budget.take(growth, { op: "truncate", requestedPath: to.requestedPath });
  file.truncateSync(to.length as number); // Deno checks the value itself
}
