/**
 * Files that a module holds open; what may be opened was decided when they were.
 *
 * @module
 */

import type { Reply } from "./message.ts";

type Op = (args: readonly unknown[]) => Omit<Reply & { readonly ok: true }, "ok">;

const OPEN_MAX = 256;
const READ_MAX = 1 << 22;

/** The open files of one Worker. */
export class OpenFiles {
  readonly #files = new Map<number, Deno.FsFile>();
  #last = 0;

  /** Keeps a file and gives its number. */
  add(file: Deno.FsFile): number {
    if (this.#files.size >= OPEN_MAX) {
      file.close();
      throw new Error(`Too many open files: a module can hold ${OPEN_MAX}`);
    }
    this.#files.set(++this.#last, file);
    return this.#last;
  }

  /** Gives the requests on open files; each begins with the file's number. */
  ops(): [string, Op][] {
    return [
      ["file.read", ([file, length]) => this.#read(file, length)],
      ["file.write", ([file, bytes]) => ({ value: this.#get(file).writeSync(copied(bytes)) })],
      ["file.seek", ([file, offset, whence]) => ({ value: this.#seek(file, offset, whence) })],
      ["file.stat", ([file]) => ({ value: plainInfo(this.#get(file).statSync()) })],
      ["file.truncate", ([file, length]) => {
        this.#get(file).truncateSync(typeof length === "number" ? length : 0);
        return {};
      }],
      ["file.sync", ([file]) => {
        this.#get(file).syncSync();
        return {};
      }],
      ["file.close", ([file]) => {
        this.#get(file).close();
        this.#files.delete(Number(file));
        return {};
      }],
    ];
  }

  #get(number: unknown): Deno.FsFile {
    const file = this.#files.get(Number(number));
    if (file === undefined) throw new Deno.errors.BadResource("Bad resource ID");
    return file;
  }

  #read(file: unknown, length: unknown): { value: number | null; bytes: Uint8Array<ArrayBuffer> } {
    const size = Math.min(Math.max(Number(length) || 0, 0), READ_MAX);
    const bytes = new Uint8Array(size);
    const value = this.#get(file).readSync(bytes);
    return { value, bytes: bytes.subarray(0, value ?? 0) };
  }

  #seek(file: unknown, offset: unknown, whence: unknown): number {
    const to = typeof offset === "bigint" ? offset : Number(offset);
    return this.#get(file).seekSync(to, Number(whence));
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

/** Turns a look at a file into plain numbers and texts. */
export function plainInfo(info: Deno.FileInfo): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(info).map(([key, value]) => [key, value instanceof Date ? +value : value]),
  );
}
