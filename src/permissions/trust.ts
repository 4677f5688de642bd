/**
 * Which workspace files the person trusts, by real path and hash, and which code of their modules.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import { isObject } from "../core/json.ts";
import {
  locked,
  readPrivate,
  removeLeftovers,
  unlessGone,
  writePrivate,
} from "../io/private_files.ts";

/** The approved code of modules, as `sha256-<hex>`, by server. */
export type ApprovedCode = Readonly<Record<string, string>>;

/** The trust in one `.pml.json`. */
export interface TrustRecord {
  /** Its real path. */
  readonly path: string;
  /**
   * The SHA-256 of its bytes, in hex: two while PML itself replaces the one by the other, none
   * where only the code of its modules is kept.
   */
  readonly hashes: readonly string[];
  readonly servers: ApprovedCode;
}

/** Hashes the bytes of a file as records do. */
export function hashOf(bytes: Uint8Array | string): string {
  return sha256(bytes);
}

/**
 * The trust that is kept in the PML home, safe for several processes. A path counts only as it
 * is: where a link leads to a trusted file, nothing is trusted.
 */
export class TrustStore {
  readonly #home: string;
  readonly #warn: (message: string) => void;

  /** Makes a store in a PML home; nothing is opened before it is used. */
  constructor(home: string, options: {
    /** Told of records that cannot be read, and that therefore trust nothing. */
    readonly warn: (message: string) => void;
  }) {
    this.#home = home;
    this.#warn = options.warn;
  }

  /** Tells whether a file of exactly these bytes is trusted at this path. */
  async isTrusted(path: string, hash: string): Promise<boolean> {
    const record = this.record(path);
    if (record?.hashes.includes(hash) !== true) return false;
    return await Deno.realPath(path).catch(unlessGone) === path;
  }

  /** Gives what is kept of a path; a record that cannot be read is told, and is none. */
  record(path: string): TrustRecord | undefined {
    const parse = (json: unknown) => parseRecord(json, path);
    return readPrivate(this.#file(path), { parse, warn: this.#warn });
  }

  /** Trusts a file as it was shown, in place of what was trusted there before. */
  async trust({ path, hash, servers }: {
    readonly path: string;
    readonly hash: string;
    readonly servers: ApprovedCode;
  }): Promise<void> {
    await this.#change(path, () => ({ path, hashes: [hash], servers }));
  }

  /** Has `change` say which code is approved, by what was approved before; gives what then is. */
  async approve(
    path: string,
    change: (before: ApprovedCode) => ApprovedCode,
  ): Promise<ApprovedCode> {
    const after = await this.#change(path, (record) => ({
      path,
      hashes: record?.hashes ?? [],
      servers: change(record?.servers ?? {}),
    }));
    return after?.servers ?? {};
  }

  /** Moves the trust to bytes that PML itself writes; only where it is in those of `from`. */
  async move(
    path: string,
    { from, to }: { readonly from: string; readonly to: readonly string[] },
  ): Promise<void> {
    await this.#change(
      path,
      (record) => record?.hashes.includes(from) ? { ...record, hashes: to } : record,
    );
  }

  /** Runs `work` while no other PML edits the file at `path`; what a killed one left is removed. */
  async whileEditing<T>(path: string, work: () => Promise<T>): Promise<T> {
    return await locked(`${this.#file(path)}.edit`, () => removeLeftovers(path).then(work));
  }

  async #change(
    path: string,
    change: (record: TrustRecord | undefined) => TrustRecord | undefined,
  ): Promise<TrustRecord | undefined> {
    const file = this.#file(path);
    return await locked(`${file}.lock`, async () => {
      const before = this.record(path);
      const after = change(before);
      if (JSON.stringify(after) !== JSON.stringify(before)) await writePrivate(file, after);
      return after;
    });
  }

  #file(path: string): string {
    return join(this.#home, "trust", `${hashOf(path)}.json`);
  }
}

function parseRecord(json: unknown, path: string): TrustRecord {
  if (isObject(json) && json.path === path && isTexts(json.hashes) && isObject(json.servers)) {
    const { hashes, servers } = json;
    // Each value was looked at.
    if (isTexts(Object.values(servers))) return { path, hashes, servers: servers as ApprovedCode };
  }
  throw new TypeError(`it is no trust in ${path}`);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}
