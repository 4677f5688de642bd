/**
 * Files that a module holds open; what may be opened was decided when they were.
 *
 * @module
 */

/** Does one request, on what the Worker sent for it. */
// deno-lint-ignore no-explicit-any -- a Worker sends what it likes: each step looks at what it uses
export type Op = (...args: any[]) => unknown;

const OPEN_MAX = 256;
const READ_MAX = 1 << 22;

/** The open files of one Worker. */
export class OpenFiles {
  readonly #files = new Map<number, Deno.FsFile>();
  #last = 0;

  /** The requests on open files; each begins with the file's number. */
  readonly ops: Readonly<Record<string, Op>> = {
    "file.read": (file, length) => {
      const bytes = new Uint8Array(Math.min(Math.max(Number(length) || 0, 0), READ_MAX));
      const read = this.#get(file).readSync(bytes);
      return read === null ? null : bytes.subarray(0, read);
    },
    "file.write": (file, bytes) => this.#get(file).writeSync(copied(bytes)),
    "file.seek": (file, offset, whence) =>
      this.#get(file).seekSync(
        typeof offset === "bigint" ? offset : Number(offset),
        Number(whence),
      ),
    "file.stat": (file) => this.#get(file).statSync(),
    "file.truncate": (file, length) => this.#get(file).truncateSync(Number(length) || 0),
    "file.sync": (file) => this.#get(file).syncSync(),
    "file.close": (file) => {
      this.#get(file).close();
      this.#files.delete(file);
    },
  };

  /** Keeps a file and gives its number. */
  add(file: Deno.FsFile): number {
    if (this.#files.size >= OPEN_MAX) {
      file.close();
      throw new Error(`Too many open files: a module can hold ${OPEN_MAX}`);
    }
    this.#files.set(++this.#last, file);
    return this.#last;
  }

  #get(number: number): Deno.FsFile {
    const file = this.#files.get(number);
    if (file === undefined) throw new Deno.errors.BadResource("Bad resource ID");
    return file;
  }
}

/** Gives bytes that the Worker cannot change any more, also where it sent shared memory. */
export function copied(value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array)) throw new TypeError("the content must be bytes");
  return value.buffer instanceof SharedArrayBuffer ? new Uint8Array(value) : value;
}

/** Writes all bytes, however many steps it takes. */
export function writeAll(file: Deno.FsFile, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
}
