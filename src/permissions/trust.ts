/**
 * The workspace files that the person trusts, by real path and hash, and the approved code of their
 * modules.
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
  /** The real path. */
  readonly path: string;
  /**
   * The SHA-256 hashes of its bytes, in hex: two while PML itself replaces the file, none if only
   * the code of its modules is approved.
   */
  readonly hashes: readonly string[];
  readonly servers: ApprovedCode;
}

/** Returns the hash of a file's bytes, as records have it. */
export function hashOf(bytes: Uint8Array | string): string {
  return sha256(bytes);
}

/**
 * The trust records in the PML home. Several processes can use them at once. Paths are real paths:
 * if a link leads to a trusted file, the link is not trusted.
 */
export class TrustStore {
  readonly #home: string;
  readonly #warn: (message: string) => void;

  /** Takes the PML home; opens nothing yet. */
  constructor(home: string, options: {
    /** Is called for records that cannot be read. They trust nothing. */
    readonly warn: (message: string) => void;
  }) {
    this.#home = home;
    this.#warn = options.warn;
  }

  /** Returns whether a file with exactly these bytes is trusted at this path. */
  async isTrusted(path: string, hash: string): Promise<boolean> {
    const record = this.record(path);
    if (record?.hashes.includes(hash) !== true) return false;
    return await Deno.realPath(path).catch(unlessGone) === path;
  }

  /**
   * Returns the record of a path. Warns about a record that cannot be read, and returns undefined.
   */
  record(path: string): TrustRecord | undefined {
    const parse = (json: unknown) => parseRecord(json, path);
    return readPrivate(this.#file(path), { parse, warn: this.#warn });
  }

  /** Trusts a file as it was shown. This replaces the trust in an older version. */
  async trust({ path, hash, servers }: {
    readonly path: string;
    readonly hash: string;
    readonly servers: ApprovedCode;
  }): Promise<void> {
    await this.#change(path, () => ({ path, hashes: [hash], servers }));
  }

  /** Replaces the approved code by the result of `change`, and returns it. */
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

  /** Moves the trust to bytes that PML itself writes. Does nothing if `from` is not trusted. */
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
    // Each value was checked.
    if (isTexts(Object.values(servers))) return { path, hashes, servers: servers as ApprovedCode };
  }
  throw new TypeError(`it is no trust in ${path}`);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}
