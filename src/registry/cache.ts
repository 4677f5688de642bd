/**
 * What registries sent, kept in the PML home: looked at whenever it is used, so that what was changed,
 * cut short or put in its place counts as not there.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import { quoted } from "../core/json.ts";
import { drop, keepFile } from "../io/kept.ts";
import { stampAt } from "../io/place.ts";
import { privateFolder } from "../io/private_files.ts";
import { readRegular } from "../io/regular_file.ts";
import { integrityOf } from "./integrity.ts";

/** What a cache needs. */
export interface CacheOptions {
  /** Is told once when nothing can be kept. */
  readonly warn: (message: string) => void;
  /** How much is kept; what was used least lately goes first. */
  readonly bytes?: number;
}

/** What is kept under a name of ours and not under its own hash. */
export type Kind = "entry" | "catalog";

const MB = 1024 * 1024;
const KEPT_BYTES = 256 * MB;
const LONGEST_FILE = 64 * MB;
/** How much is written before it is looked at what there is. */
const LOOK_BYTES = 4 * MB;
const HOUR_MS = 3_600_000;
const HASH_LENGTH = 64;
const WRITING = ".tmp";
/** Another form has other names: what has the old one is not found. */
const FORM = 1;

/** The files of the cache, each for this person alone. */
export class Cache {
  readonly #folder: string;
  readonly #options: CacheOptions;
  readonly #seen = new Map<string, string | undefined>();
  #written = Infinity;
  #warned = false;

  /** Opens nothing yet. */
  constructor(home: string, options: CacheOptions) {
    this.#folder = join(home, "cache");
    this.#options = options;
  }

  /** Gives the code of a hash, if it is that code. */
  code(integrity: string): Uint8Array | undefined {
    const bytes = this.#read(codeName(integrity));
    return bytes && integrityOf(bytes) === integrity ? bytes : undefined;
  }

  /** The file that the code of a hash is kept in. */
  codePath(integrity: string): string {
    return join(this.#folder, codeName(integrity));
  }

  /** Tells whether the code of a hash is there; a file that did not change is not read again. */
  hasCode(integrity: string): boolean {
    const path = this.codePath(integrity);
    const stamp = stampAt(path);
    if (stamp !== undefined && this.#seen.get(integrity) === stamp) return true;
    if (this.code(integrity) === undefined) return false;
    // Reading it may have marked it as used.
    this.#seen.set(integrity, stampAt(path));
    return true;
  }

  /** Keeps code under its hash. */
  keepCode(bytes: Uint8Array): void {
    this.#write(codeName(integrityOf(bytes)), [bytes]);
  }

  /** Gives what was kept of a name, if it is all of it; the JSON is ours. */
  read(kind: Kind, key: readonly string[]): unknown {
    const bytes = this.#read(fileName(kind, key));
    const body = bytes?.subarray(HASH_LENGTH);
    const hash = new TextDecoder().decode(bytes?.subarray(0, HASH_LENGTH));
    return body && sha256(body) === hash ? JSON.parse(new TextDecoder().decode(body)) : undefined;
  }

  /** Keeps a value under a name. */
  keep(kind: Kind, key: readonly string[], value: unknown): void {
    const encoder = new TextEncoder();
    const body = encoder.encode(JSON.stringify(value));
    this.#write(fileName(kind, key), [encoder.encode(sha256(body)), body]);
  }

  #read(name: string): Uint8Array | undefined {
    try {
      return this.#isOurs() ? plainBytes(join(this.#folder, name)) : undefined;
    } catch {
      // Not there, or not to be read: it is fetched again.
      return undefined;
    }
  }

  #write(name: string, parts: readonly Uint8Array[]): void {
    const path = join(this.#folder, name);
    try {
      privateFolder(this.#folder);
      keepFile(path, Buffer.concat(parts));
      for (const { length } of parts) this.#written += length;
      if (this.#written >= LOOK_BYTES) this.#prune();
    } catch (error) {
      if (!this.#warned) {
        const said = error instanceof Error ? error.message : String(error);
        this.#options.warn(`Cannot keep what registries send in ${quoted(this.#folder)}: ${said}`);
      }
      this.#warned = true;
    }
  }

  /** A link would lead what is written out of the PML home. */
  #isOurs(): boolean {
    const { isDirectory, mode } = Deno.lstatSync(this.#folder);
    if (isDirectory && ((mode ?? 0) & 0o077) !== 0) Deno.chmodSync(this.#folder, 0o700);
    return isDirectory;
  }

  /** Removes what was used least lately, until there is room again. */
  #prune(): void {
    const { bytes: most = KEPT_BYTES } = this.#options;
    const files = [...Deno.readDirSync(this.#folder)].flatMap(({ name }) => {
      const path = join(this.#folder, name);
      const { isDirectory, size, mtime } = statIfAny(path) ?? { isDirectory: true };
      return isDirectory ? [] : [{ path, size, used: mtime?.getTime() ?? 0 }];
    }).sort((a, b) => b.used - a.used);
    let kept = 0;
    for (const { path, size, used } of files) {
      const isLeft = path.endsWith(WRITING) && used < Date.now() - HOUR_MS;
      if (isLeft || kept + size > most) drop(path);
      else kept += size;
    }
    this.#written = 0;
  }
}

function codeName(integrity: string): string {
  return `${integrity}.code`;
}

function fileName(kind: Kind, key: readonly string[]): string {
  return `${sha256(JSON.stringify([FORM, ...key]))}.${kind}`;
}

function plainBytes(path: string): Uint8Array {
  const { bytes, info } = readRegular(path, { most: LONGEST_FILE });
  const now = Date.now();
  // Once an hour is enough to tell what is used from what is not.
  if ((info.mtime?.getTime() ?? now) < now - HOUR_MS) touch(path, now);
  return bytes;
}

function touch(path: string, now: number): void {
  try {
    Deno.utimeSync(path, now / 1000, now / 1000);
  } catch {
    // A home that cannot be written can be read all the same.
  }
}

function statIfAny(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch {
    // Another process has removed it meanwhile.
    return undefined;
  }
}
