/**
 * The only way of a module to files: each request is one synchronous step under the lock, on
 * values that were copied out of the message.
 *
 * @module
 */

import { lookAt, type Place, type Try, Walls } from "./ground.ts";
import { copied, OpenFiles, plainInfo, writeAll } from "./handles.ts";
import type { WorkspaceLock } from "./lock.ts";
import type { Ground, Reply } from "./message.ts";
import { isSame } from "./protect.ts";
import { failureOf, refusal, systemError } from "./refusal.ts";

type Op = (args: readonly unknown[]) => Omit<Reply & { readonly ok: true }, "ok">;

const PIECE = 1 << 20;

/** Answers the file requests of one Worker. */
export class Broker {
  readonly #walls: Walls;
  readonly #files = new OpenFiles();
  readonly #lock: WorkspaceLock;
  readonly #resultBytes: number;
  readonly #ops: ReadonlyMap<string, Op>;

  /** Takes the ground that the module may use. */
  constructor(ground: Ground, lock: WorkspaceLock) {
    this.#walls = new Walls(ground);
    this.#lock = lock;
    this.#resultBytes = ground.resultBytes;
    this.#ops = new Map<string, Op>([
      ["stat", ([path]) => ({ value: plainInfo(this.#look("look at", path).info) })],
      ["lstat", ([path]) => ({ value: plainInfo(this.#lstat(path)) })],
      ["realPath", ([path]) => ({ value: this.#look("resolve", path).path })],
      ["readLink", ([path]) => ({ value: this.#readLink(path) })],
      ["readDir", ([path]) => ({ value: this.#readDir(path) })],
      ["readFile", ([path]) => ({ bytes: this.#readFile(path) })],
      ["writeFile", ([path, bytes, options]) => this.#writeFile(path, bytes, options)],
      ["open", ([path, options]) => ({ value: this.#open(path, options) })],
      ["mkdir", ([path, options]) => this.#mkdir(path, options)],
      ["remove", ([path, options]) => this.#remove(path, options)],
      ["rename", ([from, to]) => this.#rename(from, to)],
      ["copyFile", ([from, to]) => this.#copyFile(from, to)],
      ["truncate", ([path, length]) => this.#truncate(path, length)],
      ...this.#files.ops(),
    ]);
  }

  /** Does one request. */
  answer(op: string, args: readonly unknown[]): Reply {
    try {
      const run = this.#ops.get(op);
      if (run === undefined) throw new TypeError(`unknown file request`);
      return { ok: true, ...run(args) };
    } catch (error) {
      const asked = typeof args[0] === "string" ? args[0] : "";
      return { ok: false, error: failureOf(error, { op, asked }) };
    }
  }

  #look(op: string, path: unknown): Place & { readonly info: Deno.FileInfo } {
    return this.#lock.shared(() => this.#walls.follow({ op, asked: text(path), access: "look" }));
  }

  #lstat(path: unknown): Deno.FileInfo {
    return this.#lock.shared(() =>
      found(this.#walls.entry({ op: "look at", asked: text(path), access: "look" }).info)
    );
  }

  #readLink(path: unknown): string {
    return this.#lock.shared(() =>
      Deno.readLinkSync(
        this.#walls.entry({ op: "look at", asked: text(path), access: "look" }).path,
      )
    );
  }

  #readDir(path: unknown): Deno.DirEntry[] {
    return this.#lock.shared(() => {
      const place = this.#walls.follow({ op: "list", asked: text(path), access: "read" });
      if (!place.info.isDirectory) {
        throw systemError("NotADirectory");
      }
      return [...Deno.readDirSync(place.path)];
    });
  }

  #readFile(path: unknown): Uint8Array<ArrayBuffer> {
    const attempt: Try = { op: "read", asked: text(path), access: "read" };
    return this.#lock.shared(() => {
      const place = this.#walls.follow(attempt);
      this.#refuseLarge(place.info.size, attempt);
      using file = this.#walls.openFile(place, { attempt, open: { read: true } });
      return this.#readAll(file, { attempt, size: place.info.size });
    });
  }

  #readAll(file: Deno.FsFile, options: { attempt: Try; size: number }): Uint8Array<ArrayBuffer> {
    let bytes = new Uint8Array(options.size);
    for (let length = 0;;) {
      // A full buffer needs one look further: the file may have grown.
      const rest = length < bytes.length ? bytes.subarray(length) : new Uint8Array(1);
      const read = file.readSync(rest);
      if (read === null) return length === bytes.length ? bytes : bytes.slice(0, length);
      if (length === bytes.length) {
        const larger = new Uint8Array(2 * length + PIECE);
        larger.set(bytes);
        larger.set(rest, length);
        bytes = larger;
      }
      length += read;
      this.#refuseLarge(length, options.attempt);
    }
  }

  #refuseLarge(size: number, attempt: Try): void {
    if (size <= this.#resultBytes) return;
    const why = `it has ${size} bytes, more than the ${this.#resultBytes} of one result`;
    throw refusal("RESULT_TOO_LARGE", attempt, why);
  }

  #writeFile(path: unknown, bytes: unknown, options: unknown): Record<never, never> {
    const content = copied(bytes);
    const flags = { ...flagsOf(options), write: true, read: false };
    const truncate = !flags.append;
    return this.#lock.alone(() => {
      using file = this.#openChecked({ op: "write", path, flags: { ...flags, truncate } });
      writeAll(file, content);
      return {};
    });
  }

  #open(path: unknown, options: unknown): number {
    const flags = flagsOf(options);
    if (!flags.read && !flags.write && !flags.append) {
      throw new TypeError("OpenOptions requires at least one option to be true");
    }
    const writes = flags.write || flags.append;
    const open = () => this.#files.add(this.#openChecked({ op: "open", path, flags }));
    return writes ? this.#lock.alone(open) : this.#lock.shared(open);
  }

  #openChecked(request: { op: string; path: unknown; flags: Flags }): Deno.FsFile {
    const { op, flags } = request;
    const { truncate, create, createNew, mode, read } = flags;
    const asked = text(request.path);
    const write = flags.write || flags.append;
    const attempt: Try = { op, asked, access: write ? "write" : "read" };
    if (write && read) this.#walls.target({ op, asked, access: "read" });
    const place = write ? this.#walls.target(attempt) : this.#walls.follow(attempt);
    if (place.info && createNew) throw systemError("AlreadyExists");
    if (!create && !createNew) found(place.info);
    const append = flags.append;
    const open = write
      ? { read, write, append, ...(mode === undefined ? {} : { mode }) }
      : { read };
    const file = this.#walls.openFile(place, { attempt, open });
    if (truncate && write && place.info) file.truncateSync(0);
    return file;
  }

  #mkdir(path: unknown, options: unknown): Record<never, never> {
    const { recursive, mode } = flagsOf(options);
    const attempt: Try = { op: "make", asked: text(path), access: "write" };
    const make = (folder: string) => Deno.mkdirSync(folder, mode === undefined ? {} : { mode });
    return this.#lock.alone(() => {
      if (!recursive) {
        make(this.#walls.entry(attempt).path);
        return {};
      }
      const { folders, found: base } = this.#walls.missing(attempt);
      if (folders.length === 0 && !isFolder(base.path)) {
        throw systemError("AlreadyExists");
      }
      folders.forEach(make);
      return {};
    });
  }

  #remove(path: unknown, options: unknown): Record<never, never> {
    const { recursive } = flagsOf(options);
    const attempt: Try = { op: "remove", asked: text(path), access: "write" };
    return this.#lock.alone(() => {
      const place = this.#walls.entry(attempt);
      this.#walls.requireFree(place, { attempt });
      Deno.removeSync(place.path, { recursive });
      return {};
    });
  }

  #rename(from: unknown, to: unknown): Record<never, never> {
    const leave: Try = { op: "rename", asked: text(from), access: "write" };
    const arrive: Try = { op: "rename", asked: text(to), access: "write" };
    return this.#lock.alone(() => {
      this.#walls.entry({ ...leave, access: "read" });
      const source = this.#walls.entry(leave);
      const target = this.#walls.entry(arrive);
      found(source.info);
      this.#walls.requireFree(source, { attempt: leave, movedTo: target.path });
      this.#walls.requireFree(target, { attempt: arrive });
      Deno.renameSync(source.path, target.path);
      return {};
    });
  }

  #copyFile(from: unknown, to: unknown): Record<never, never> {
    const attempt: Try = { op: "copy", asked: text(from), access: "read" };
    return this.#lock.alone(() => {
      const place = this.#walls.follow(attempt);
      using source = this.#walls.openFile(place, { attempt, open: { read: true } });
      const mode = (place.info.mode ?? 0o644) & 0o777;
      const flags = { ...flagsOf({}), write: true, create: true, mode };
      using target = this.#openChecked({ op: "copy", path: to, flags });
      if (isSame(place.info, target.statSync())) {
        throw new TypeError("Source and target are the same file");
      }
      target.truncateSync(0);
      const piece = new Uint8Array(PIECE);
      for (let n = source.readSync(piece); n !== null; n = source.readSync(piece)) {
        writeAll(target, piece.subarray(0, n));
      }
      return {};
    });
  }

  #truncate(path: unknown, length: unknown): Record<never, never> {
    const flags = { ...flagsOf({}), write: true };
    return this.#lock.alone(() => {
      using file = this.#openChecked({ op: "truncate", path, flags });
      file.truncateSync(typeof length === "number" ? length : 0);
      return {};
    });
  }
}

interface Flags {
  readonly read: boolean;
  readonly write: boolean;
  readonly append: boolean;
  readonly truncate: boolean;
  readonly create: boolean;
  readonly createNew: boolean;
  readonly recursive: boolean;
  readonly mode: number | undefined;
}

function flagsOf(value: unknown): Flags {
  const given = new Map(Object.entries(typeof value === "object" && value !== null ? value : {}));
  const flag = (name: string) => given.get(name) === true;
  const mode = given.get("mode");
  return {
    read: flag("read"),
    write: flag("write"),
    append: flag("append"),
    truncate: flag("truncate"),
    create: flag("create"),
    createNew: flag("createNew"),
    recursive: flag("recursive"),
    mode: typeof mode === "number" ? mode & 0o777 : undefined,
  };
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new TypeError("a path must be a string or a URL");
}

function found(info: Deno.FileInfo | undefined): Deno.FileInfo {
  if (info !== undefined) return info;
  throw systemError("NotFound");
}

function isFolder(path: string): boolean {
  return lookAt(path)?.isDirectory ?? false;
}
