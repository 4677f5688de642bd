/**
 * Caches responses of registries in the PML home. Each file is checked at every use: a changed,
 * incomplete or replaced file counts as missing.
 *
 * @module
 */

import { parseExact } from "../core/exact_json.ts";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { quoted } from "../core/json.ts";
import { removeIfPossible, writeFileWhole } from "../io/cache_files.ts";
import { joinBytes } from "../io/lines.ts";
import { infoAt, stampAt } from "../io/path_info.ts";
import { isSharedMode, privateFolder, type WarningLog } from "../io/private_files.ts";
import { readRegular } from "../io/regular_file.ts";
import { integrityOf } from "../core/hash.ts";

/** Kinds of values that are stored by name instead of by hash. */
export type CacheKind = "entry" | "catalog";

const MB = 1024 * 1024;
const KEPT_BYTES = 256 * MB;
const LONGEST_FILE = 64 * MB;
/** The number of written bytes after which old files are removed. */
const PRUNE_BYTES = 4 * MB;
const HOUR_MS = 3_600_000;
const HASH_LENGTH = 64;
const TEMPORARY_ENDING = ".tmp";
/**
 * The version of the file format. It is part of the file names, so that PML does not read other
 * versions.
 */
const FORMAT_VERSION = 1;

/** The files of the cache. Only this user can read them. */
export class Cache {
  readonly #folder: string;
  readonly #log: WarningLog;
  readonly #maxBytes: number;
  readonly #stamps = new Map<string, string | undefined>();
  #writtenBytes = Infinity;
  #hasWarned = false;

  /**
   * Creates a cache in the PML home. Opens nothing yet. Logs once if nothing can be stored. If the
   * files have more than `maxBytes` bytes, the files that were unused for the longest time are
   * removed.
   */
  constructor(home: string, log: WarningLog, maxBytes = KEPT_BYTES) {
    this.#folder = join(home, "cache");
    this.#log = log;
    this.#maxBytes = maxBytes;
  }

  /** Returns the code with a hash; undefined if it is missing or damaged. */
  code(integrity: string): Uint8Array | undefined {
    const bytes = this.#read(codeName(integrity));
    // guard: cached-code
    return bytes && integrityOf(bytes) === integrity ? bytes : undefined;
  }

  /** Returns the path of the code with a hash. */
  codePath(integrity: string): string {
    return join(this.#folder, codeName(integrity));
  }

  /** Returns whether the code with a hash is cached. An unchanged file is not read again. */
  hasCode(integrity: string): boolean {
    const path = this.codePath(integrity);
    const stamp = stampAt(path);
    if (stamp !== undefined && this.#stamps.get(integrity) === stamp) return true;
    if (this.code(integrity) === undefined) return false;
    // Reading a file may have updated its time.
    this.#stamps.set(integrity, stampAt(path));
    return true;
  }

  /** Stores code under its hash. */
  keepCode(bytes: Uint8Array): void {
    this.#write(codeName(integrityOf(bytes)), [bytes]);
  }

  /** Returns the value stored under a name; undefined if it is missing or damaged. */
  read(kind: CacheKind, key: readonly string[]): unknown {
    const bytes = this.#read(fileName(kind, key));
    const body = bytes?.subarray(HASH_LENGTH);
    const hash = new TextDecoder().decode(bytes?.subarray(0, HASH_LENGTH));
    // guard: cached-entry
    return body && sha256(body) === hash ? parseExact(new TextDecoder().decode(body)) : undefined;
  }

  /** Stores a value under a name. */
  keep(kind: CacheKind, key: readonly string[], value: unknown): void {
    const encoder = new TextEncoder();
    const body = encoder.encode(JSON.stringify(value));
    this.#write(fileName(kind, key), [encoder.encode(sha256(body)), body]);
  }

  #read(name: string): Uint8Array | undefined {
    try {
      // guard: cache-folder
      return this.#isRealFolder() ? plainBytes(join(this.#folder, name)) : undefined;
    } catch {
      // If the file is missing or unreadable, the value is downloaded again.
      return undefined;
    }
  }

  #write(name: string, parts: readonly Uint8Array[]): void {
    const path = join(this.#folder, name);
    try {
      privateFolder(this.#folder);
      writeFileWhole(path, joinBytes(parts));
      for (const { length } of parts) this.#writtenBytes += length;
      if (this.#writtenBytes >= PRUNE_BYTES) this.#prune();
    } catch (error) {
      if (!this.#hasWarned) {
        this.#log.warn(
          `Cannot cache what registries send in ${quoted(this.#folder)}: ${messageOf(error)}`,
        );
      }
      this.#hasWarned = true;
    }
  }

  /**
   * Returns whether the cache folder is a folder, not a link: a link could lead outside the PML
   * home. Makes the folder private.
   */
  #isRealFolder(): boolean {
    const info = Deno.lstatSync(this.#folder);
    if (info.isDirectory && isSharedMode(info)) Deno.chmodSync(this.#folder, 0o700);
    return info.isDirectory;
  }

  /** Removes the files unused for the longest time, until the rest fits. */
  #prune(): void {
    const files = [...Deno.readDirSync(this.#folder)].flatMap(({ name }) => {
      const path = join(this.#folder, name);
      const info = infoAt(path);
      // Another process may have removed the file meanwhile.
      if (info === undefined || info.isDirectory) return [];
      return [{ path, size: info.size, used: info.mtime?.getTime() ?? 0 }];
    }).sort((a, b) => b.used - a.used);
    let total = 0;
    for (const { path, size, used } of files) {
      // A process that was killed may have left an incomplete file.
      const isAbandoned = path.endsWith(TEMPORARY_ENDING) && used < Date.now() - HOUR_MS;
      if (isAbandoned || total + size > this.#maxBytes) removeIfPossible(path);
      else total += size;
    }
    this.#writtenBytes = 0;
  }
}

/** Returns the age of a timestamp. Timestamps in the future (clock skew) count as expired. */
export function ageOf(at: number): number {
  return Math.abs(Date.now() - at);
}

function codeName(integrity: string): string {
  return `${integrity}.code`;
}

function fileName(kind: CacheKind, key: readonly string[]): string {
  return `${sha256(JSON.stringify([FORMAT_VERSION, ...key]))}.${kind}`;
}

function plainBytes(path: string): Uint8Array {
  const { bytes, info } = readRegular(path, { most: LONGEST_FILE });
  const now = Date.now();
  // The time of use is updated once an hour, which is enough for removing old files.
  if ((info.mtime?.getTime() ?? now) < now - HOUR_MS) touch(path, now);
  return bytes;
}

function touch(path: string, now: number): void {
  try {
    Deno.utimeSync(path, now / 1000, now / 1000);
  } catch {
    // A home that cannot be written can still be read.
  }
}
