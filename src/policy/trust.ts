/**
 * The workspace files that the user trusts, by real path and hash, and the approved code of their
 * modules.
 *
 * @module
 */

import { join } from "node:path";
import { sha256, sha256Async } from "../core/hash.ts";
import { isObject } from "../core/json.ts";
import {
  namesIn,
  readPrivate,
  removeLeftovers,
  syncName,
  unlessGone,
  type WarningLog,
  withLock,
  writePrivate,
} from "../io/private_files.ts";
import { retryWhileBusy } from "../io/waiting.ts";

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
  /** The lines that the user saw; undefined if PML itself made the file. */
  readonly shown?: readonly string[] | undefined;
}

/** The lines that a question about a file shows for these bytes. */
export interface TrustLines {
  /** The SHA-256 hash of the bytes, in hex. */
  readonly hash: string;
  readonly lines: readonly string[];
}

/** Reads the lines of the file at a path. Returns undefined if the file cannot be read. */
export type TrustLinesReader = (path: string) => Promise<TrustLines | undefined>;

/** Returns the hash of a file's bytes, as trust records contain it. */
export function hashOf(bytes: Uint8Array | string): string {
  return sha256(bytes);
}

/**
 * The trust records in the PML home. Several processes can use them at the same time. Paths are
 * real paths: a link to a trusted file is not trusted.
 */
export class TrustStore {
  readonly #folder: string;
  readonly #log: WarningLog;
  readonly #linesAt: TrustLinesReader;

  /** Takes the PML home; opens nothing yet. Unreadable records trust nothing. */
  constructor(
    home: string,
    log: WarningLog,
    linesAt: TrustLinesReader = () => Promise.resolve(undefined),
  ) {
    this.#folder = join(home, "trust");
    this.#log = log;
    this.#linesAt = linesAt;
  }

  /** Returns whether a file with exactly these bytes is trusted at this path. */
  async isTrusted(path: string, hash: string): Promise<boolean> {
    return (await this.record(path))?.hashes.includes(hash) === true &&
      await Deno.realPath(path).catch(unlessGone) === path;
  }

  /**
   * Returns the record of a path. Warns about a record that cannot be read, and returns undefined.
   */
  async record(path: string): Promise<TrustRecord | undefined> {
    return this.#recordIn(`${await sha256Async(path)}.json`, (recorded) => recorded === path);
  }

  /** Trusts a file as shown to the user. Replaces the trust in an older version. */
  async trust(
    { path, hash, servers, shown }: Omit<TrustRecord, "hashes"> & { readonly hash: string },
  ): Promise<void> {
    await this.#change(path, () => ({ path, hashes: [hash], servers, shown }));
  }

  /** Revokes the trust in a path. Returns whether there was any. */
  async revoke(path: string): Promise<boolean> {
    const file = this.fileOf(path);
    return await withLock(`${file}.lock`, async () => {
      const existed = await retryWhileBusy(() =>
        Deno.remove(file)
      ).then(() => true, unlessGone) === true;
      // After a power failure, the removed record must not be there again.
      if (existed) await syncName(file);
      return existed;
    });
  }

  /** Returns all records that can be read, by path. */
  async list(): Promise<readonly TrustRecord[]> {
    const files = await namesIn(this.#folder);
    return files.filter((name) => name.endsWith(".json"))
      .flatMap((name) => this.#recordIn(name, (path) => fileNameOf(path) === name) ?? [])
      .sort((one, other) => one.path.localeCompare(other.path));
  }

  /**
   * Replaces the approved code by the result of `change`, and returns it. A later question about
   * the file does not show that code as new.
   */
  async approve(
    path: string,
    change: (before: ApprovedCode) => ApprovedCode,
  ): Promise<ApprovedCode> {
    const after = await this.#change(path, (record) => {
      const servers = change(record?.servers ?? {});
      const shown = record?.shown && withCode(record.shown, record.servers, servers);
      return { ...record, path, hashes: record?.hashes ?? [], servers, shown };
    });
    return after?.servers ?? {};
  }

  /** Moves the trust to bytes that PML itself writes. Does nothing if `from` is not trusted. */
  async move(
    path: string,
    { from, to, edit }: {
      /** The hash before the edit. */
      readonly from: string;
      /** The hashes that are trusted afterwards. */
      readonly to: readonly string[];
      /** The lines before and after the edit. */
      readonly edit?: readonly [TrustLines, TrustLines] | undefined;
    },
  ): Promise<void> {
    // guard: trust-moves
    await this.#change(
      path,
      (record) =>
        record?.hashes.includes(from) ? { ...withEdit(record, edit), hashes: to } : record,
    );
  }

  /**
   * Writes other bytes to a trusted file. The trust moves with them, and so do the lines of the
   * question: the user asked for the edit, so a later question does not show its lines as new.
   */
  async whileWriting(
    path: string,
    { from, to }: { readonly from: string; readonly to: string },
    write: () => Promise<void>,
  ): Promise<void> {
    const before = await this.#linesAt(path);
    // Both versions are trusted while the file is written, so that a crash in between loses no
    // trust.
    await this.move(path, { from, to: [from, to] });
    await write();
    const after = await this.#linesAt(path);
    const moved = { from: to, to: [to] };
    // Another program may have changed the file meanwhile.
    // guard: edited-lines
    if (before?.hash !== from || after?.hash !== to) return await this.move(path, moved);
    await this.move(path, { ...moved, edit: [before, after] });
  }

  /** Runs `work` while no other process edits the file; removes files of killed processes. */
  async whileEditing<T>(path: string, work: () => Promise<T>): Promise<T> {
    return await withLock(`${this.fileOf(path)}.edit`, () => removeLeftovers(path).then(work));
  }

  async #change(
    path: string,
    change: (record: TrustRecord | undefined) => TrustRecord | undefined,
  ): Promise<TrustRecord | undefined> {
    const file = this.fileOf(path);
    return await withLock(`${file}.lock`, async () => {
      const before = await this.record(path);
      const after = change(before);
      if (JSON.stringify(after) !== JSON.stringify(before)) await writePrivate(file, after);
      return after;
    });
  }

  /** Returns the file of the record of a path. */
  fileOf(path: string): string {
    return join(this.#folder, fileNameOf(path));
  }

  #recordIn(name: string, isItsPath: (path: string) => boolean): TrustRecord | undefined {
    const parse = (json: unknown) => parseRecord(json, isItsPath);
    return readPrivate(join(this.#folder, name), parse, this.#log);
  }
}

/** Returns the line about the code of a module in a question. */
export function codeLine(name: string, code: string): string {
  return `code of "${name}": ${code}`;
}

/** Returns shown lines in which the lines about changed code are replaced. */
function withCode(
  lines: readonly string[],
  before: ApprovedCode,
  after: ApprovedCode,
): readonly string[] {
  const changed = Object.entries(after).filter(([name, code]) => before[name] !== code);
  const starts = changed.map(([name]) => codeLine(name, ""));
  return [
    ...lines.filter((line) => !starts.some((start) => line.startsWith(start))),
    ...changed.map(([name, code]) => codeLine(name, code)),
  ];
}

/**
 * Returns a record whose shown lines follow an edit: without removed lines, and with added lines.
 */
function withEdit(
  record: TrustRecord,
  edit: readonly [TrustLines, TrustLines] | undefined,
): TrustRecord {
  if (edit === undefined || record.shown === undefined) return record;
  const [before, after] = edit.map(({ lines }) => lines) as [readonly string[], readonly string[]];
  const same = record.shown.filter((line) => !before.includes(line) || after.includes(line));
  const added = after.filter((line) => !before.includes(line) && !same.includes(line));
  return { ...record, shown: [...same, ...added] };
}

function fileNameOf(path: string): string {
  return `${hashOf(path)}.json`;
}

function parseRecord(json: unknown, isItsPath: (path: string) => boolean): TrustRecord {
  if (isObject(json) && typeof json.path === "string" && isItsPath(json.path)) {
    const { path, hashes, servers, shown } = json;
    const isWhole = isTexts(hashes) && isObject(servers) && isTexts(Object.values(servers)) &&
      (shown === undefined || isTexts(shown));
    // Each value was checked.
    if (isWhole) return { path, hashes, servers: servers as ApprovedCode, shown };
  }
  throw new TypeError("it is not a trust record of the path in its name");
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}
