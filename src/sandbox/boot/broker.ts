/**
 * Answers the file requests of a module, which has no other access to files. Each request is one
 * synchronous step under the lock. Its arguments are copies, which the Worker cannot change during
 * the step.
 *
 * @module
 */

import {
  assertNoJournal,
  type CheckedPath,
  lookAt,
  type PathAttempt,
  PathGuard,
} from "./path_guard.ts";
import { retryWhileBusySync } from "../../io/waiting.ts";
import { copyBytes, type Op, type OpenFile, OpenFiles, resize, writeAll } from "./handles.ts";
import type { WorkspaceLock } from "./lock.ts";
import type { FileScope, HostReply } from "./message.ts";
import { type AccessKind, isSameFile } from "./protect.ts";
import { joinPath } from "./names.ts";
import { failureReply, refusalOf, systemError, WriteBudget } from "./refusal.ts";

const PIECE = 1 << 20;
/** The approximate size of one entry of a folder in a message, without its name. */
const ENTRY_BYTES = 80;

/** Answers the file requests of one Worker. */
export class Broker {
  /** Counts the bytes that the module writes. */
  readonly budget: WriteBudget;
  readonly #guard: PathGuard;
  readonly #files: OpenFiles;
  readonly #lock: WorkspaceLock;
  readonly #scope: FileScope;
  readonly #looks: Readonly<Record<string, Op>> = {
    stat: (path) => this.#guard.follow(attemptTo("look at", path, "look")).info,
    lstat: (path) => infoOf(this.#guard.entry(attemptTo("look at", path, "look")).info),
    realPath: (path) => this.#guard.follow(attemptTo("resolve", path, "look")).path,
    readLink: (path) =>
      Deno.readLinkSync(this.#guard.entry(attemptTo("look at", path, "look")).path),
    readDir: (path) => this.#readDir(attemptTo("list", path, "read")),
    readFile: (path) => this.#readFile(attemptTo("read", path, "read")),
  };
  readonly #changes: Readonly<Record<string, Op>> = {
    writeFile: (path, bytes, options) => this.#writeFile(path, copyBytes(bytes), flagsOf(options)),
    mkdir: (path, options) => this.#mkdir(attemptTo("make", path, "write"), flagsOf(options)),
    remove: (path, options) => this.#remove(attemptTo("remove", path, "write"), flagsOf(options)),
    rename: (from, to) => this.#rename(attemptTo("rename", from, "write"), to),
    copyFile: (from, to) => this.#copyFile(attemptTo("copy", from, "read"), to),
    truncate: (path, length) => {
      using file = this.#openFile("truncate", path, flagsOf({ write: true })).file;
      resize(file, { length, requestedPath: path, budget: this.budget });
    },
    chmod: (path, mode) => {
      const attempt = attemptTo("change the mode of", path, "write");
      const place = this.#guard.owned(attempt);
      this.#guard.requireFree(place, { attempt });
      Deno.chmodSync(place.path, typeof mode === "number" ? mode & 0o777 : mode);
    },
    utime: (path, access, change) => {
      const place = this.#guard.owned(attemptTo("change the times of", path, "write"));
      Deno.utimeSync(place.path, access, change);
    },
    makeTempFile: (options) => {
      const path = this.#freshPath(options);
      this.#openFile("make", path, flagsOf({ write: true, createNew: true, mode: 0o600 }))
        .file.close();
      return path;
    },
    makeTempDir: (options) => {
      const path = this.#freshPath(options);
      this.#mkdir(attemptTo("make", path, "write"), flagsOf({ mode: 0o700 }));
      return path;
    },
  };
  readonly #ops: ReadonlyMap<string, Op>;

  /** Creates a broker for the files that the module may use. */
  constructor(scope: FileScope, lock: WorkspaceLock) {
    this.#guard = new PathGuard(scope);
    this.#lock = lock;
    this.#scope = scope;
    this.budget = new WriteBudget(scope.writeBytes);
    this.#files = new OpenFiles(this.budget);
    const locked = (ops: Readonly<Record<string, Op>>, exclusive: boolean) =>
      Object.entries(ops).map(([name, op]): [string, Op] => [
        name,
        (...args) => lock.during(() => op(...args), exclusive),
      ]);
    this.#ops = new Map<string, Op>([
      ...locked(this.#looks, false),
      ...locked(this.#changes, true),
      ["open", (path, options) => this.#open(path, flagsOf(options))],
      ...Object.entries(this.#files.ops),
    ]);
  }

  /** Answers one request. */
  answer(op: string, args: readonly unknown[]): HostReply {
    try {
      const run = this.#ops.get(op);
      if (run === undefined) throw new TypeError(`unknown file request`);
      // Not spread, because the Worker chooses the length of the list.
      return { ok: true, value: run(args[0], args[1], args[2]) };
    } catch (error) {
      return failureReply(error, { op, args });
    }
  }

  #readDir(attempt: PathAttempt): Deno.DirEntry[] {
    const place = this.#guard.follow(attempt);
    if (!place.info.isDirectory) throw systemError("NotADirectory");
    const entries = Deno.readDirSync(place.path).toArray();
    // The size of the message: each name with its three flags.
    const size = entries.reduce((sum, { name }) => sum + 2 * name.length + ENTRY_BYTES, 0);
    this.#refuseLarge(size, attempt);
    return entries;
  }

  #readFile(attempt: PathAttempt): Uint8Array {
    const place = this.#guard.follow(attempt);
    this.#refuseLarge(place.info.size, attempt);
    using file = this.#guard.openFile(place, { attempt, open: { read: true } });
    let bytes = new Uint8Array(place.info.size);
    for (let length = 0;;) {
      // If the buffer is full, one more read shows whether the file has grown.
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
      this.#refuseLarge(length, attempt);
    }
  }

  #refuseLarge(size: number, attempt: PathAttempt): void {
    const { resultBytes } = this.#scope;
    if (size <= resultBytes) return;
    const why = `it has ${size} bytes, more than the ${resultBytes} of one result`;
    throw refusalOf("RESULT_TOO_LARGE", attempt, why);
  }

  #writeFile(path: unknown, bytes: Uint8Array, flags: Flags): void {
    const { mode, append } = flags;
    const { file, requestedPath, place } = this.#openFile("write", path, {
      ...flags,
      write: true,
      read: false,
      truncate: false,
    });
    using _ = file;
    this.budget.take(bytes.length, { op: "write", requestedPath });
    // Like Deno, this sets the mode even if the file existed or the umask removed bits.
    if (mode !== undefined) Deno.chmodSync(place.path, mode);
    if (!append) file.truncateSync(0);
    writeAll(file, bytes);
  }

  #open(path: unknown, flags: Flags): number {
    const { read, write, append, truncate, create, createNew } = flags;
    const why = !Object.values(flags).includes(true)
      ? "'options' requires at least one option to be true"
      : truncate && !write
      ? "'truncate' option requires 'write' to be true"
      : (create || createNew) && !write && !append
      ? "'create' or 'createNew' options require 'write' or 'append' to be true"
      : undefined;
    if (why !== undefined) throw new Error(why);
    if ((truncate && append && !createNew) || !(read || write || append)) {
      throw systemError("Invalid");
    }
    const open = () => this.#files.add(this.#openFile("open", path, flags));
    return this.#lock.during(open, write || append);
  }

  #openFile(op: string, path: unknown, flags: Flags): OpenFile & { readonly place: CheckedPath } {
    const { truncate, create, createNew, mode, read, append } = flags;
    const write = flags.write || append;
    const attempt = attemptTo(op, path, write ? "write" : "read");
    if (write && read) this.#guard.target({ ...attempt, access: "read" });
    const place = write ? this.#guard.target(attempt) : this.#guard.follow(attempt);
    if (place.info && createNew) throw systemError("AlreadyExists");
    if (!create && !createNew) infoOf(place.info);
    const file = this.#guard.openFile(place, { attempt, open: { read, write, append, mode } });
    if (truncate && write && place.info) file.truncateSync(0);
    return { file, requestedPath: attempt.requestedPath, write, append, place };
  }

  #freshPath(options: unknown): string {
    const { dir = this.#scope.temp, prefix, suffix } = Object(options);
    if (typeof dir !== "string") {
      const attempt = { op: "make a temporary file in", requestedPath: "TMPDIR" };
      throw refusalOf("SANDBOX_DENIED", attempt, 'the module has no write grant (pass "dir")');
    }
    const [before, after] = [prefix, suffix].map((part) => typeof part === "string" ? part : "");
    const [bad] = /[/\\:*?"<>|\p{Cc}]/u.exec(`${before}${after}`) ?? [];
    if (bad !== undefined) throw new Error(`Invalid character in prefix or suffix: ${bad}`);
    const random = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
    const name = `${before}${random}${after}`;
    return dir === "" ? name : joinPath(dir.replace(/(?<=.)\/$/, ""), name);
  }

  #mkdir(attempt: PathAttempt, { recursive, mode }: Flags): void {
    const make = (folder: string) => Deno.mkdirSync(folder, { mode });
    if (!recursive) return make(this.#guard.entry(attempt).path);
    const { folders, base } = this.#guard.missing(attempt);
    if (folders.length === 0 && !lookAt(base)?.isDirectory) throw systemError("AlreadyExists");
    folders.forEach(make);
  }

  #remove(attempt: PathAttempt, { recursive }: Flags): void {
    const place = this.#guard.entry(attempt);
    this.#guard.requireFree(place, { attempt });
    retryWhileBusySync(() => Deno.removeSync(place.path, { recursive }));
  }

  #rename(leave: PathAttempt, to: unknown): void {
    const arrive = attemptTo("rename", to, "write");
    this.#guard.entry({ ...leave, access: "read" });
    const source = this.#guard.entry(leave);
    const target = this.#guard.entry(arrive);
    const info = infoOf(source.info);
    for (const { path } of [source, target]) assertNoJournal({ path, info }, leave);
    this.#guard.requireFree(source, { attempt: leave, movedTo: target.path });
    this.#guard.requireFree(target, { attempt: arrive });
    retryWhileBusySync(() => Deno.renameSync(source.path, target.path));
  }

  #copyFile(attempt: PathAttempt, to: unknown): void {
    const place = this.#guard.follow(attempt);
    if (place.info.isDirectory) throw systemError("Invalid");
    using source = this.#guard.openFile(place, { attempt, open: { read: true } });
    const mode = (place.info.mode ?? 0o644) & 0o777;
    const opened = this.#openFile("copy", to, flagsOf({ write: true, create: true, mode }));
    using target = opened.file;
    if (isSameFile(place.info, target.statSync())) throw systemError("Invalid");
    this.budget.take(place.info.size, { op: "copy", requestedPath: opened.requestedPath });
    // The mode is set even if the file existed or the umask removed bits.
    Deno.chmodSync(opened.place.path, mode);
    target.truncateSync(0);
    const piece = new Uint8Array(PIECE);
    for (let n = source.readSync(piece); n !== null; n = source.readSync(piece)) {
      writeAll(target, piece.subarray(0, n));
    }
  }
}

const FLAGS = ["read", "write", "append", "truncate", "create", "createNew", "recursive"] as const;

type Flags = Readonly<Record<typeof FLAGS[number], boolean>> & { readonly mode?: number };

function flagsOf(value: unknown): Flags {
  const options = Object(value);
  const flags = Object.fromEntries(FLAGS.map((name) => [name, options[name] === true]));
  const { mode: requestedMode } = options;
  if (requestedMode != null && typeof requestedMode !== "number") {
    throw new TypeError("the mode must be a number");
  }
  const mode = requestedMode == null ? undefined : requestedMode & 0o777;
  return { ...flags as Record<typeof FLAGS[number], boolean>, mode }; // each name of FLAGS is set
}

function attemptTo(op: string, path: unknown, access: AccessKind): PathAttempt {
  if (typeof path === "string") return { op, requestedPath: path, access };
  throw new TypeError("a path must be a string or a URL");
}

function infoOf(info: Deno.FileInfo | undefined): Deno.FileInfo {
  if (info !== undefined) return info;
  throw systemError("NotFound");
}
