/**
 * Reads and writes the pins: `pml.lock` in the workspace, and a file in the PML home with the
 * approvals of that workspace. Only one process writes at a time, and only complete files.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import { isUtf8 } from "node:buffer";
import { join } from "node:path";
import { parseExact } from "../core/exact_json.ts";
import { quoted } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { stampAt } from "../io/path_info.ts";
import {
  NO_WARNINGS,
  readPlain,
  readPrivateText,
  removeLeftovers,
  type WarningLog,
  withLock,
  writePrivate,
  writeWhole,
} from "../io/private_files.ts";
import { fileError } from "../io/regular_file.ts";
import { definitionHash } from "./integrity.ts";
import { LOCK_MAX, type LockEntries, lockText, parseLock, parsePinned } from "./lock.ts";
import { LOCK_NAME, pinsFile } from "./pins_file.ts";

/** The pins at one moment. */
export interface PinState {
  /** The entries of `pml.lock`; empty if there is no such file. */
  readonly lock: LockEntries;
  /** The entries that the user approved for this workspace. */
  readonly home: LockEntries;
  /** A text that changes when the files change. */
  readonly stamp: string;
}

/** The two files with the pins of one workspace. */
export class PinFiles {
  /** The path of `pml.lock`. */
  readonly path: string;
  readonly #folder: string;
  readonly #log: WarningLog;
  /** The path of the pins in the PML home. */
  readonly #homePins: string;
  readonly #definitions: string;

  /** Takes the PML home and the folder of `pml.lock`; opens nothing. */
  constructor(home: string, folder: string, log: WarningLog) {
    this.path = join(folder, LOCK_NAME);
    this.#folder = folder;
    this.#log = log;
    this.#homePins = pinsFile(home, folder);
    this.#definitions = join(home, "pins", "definitions");
  }

  /** Returns a text that changes when another process writes the files. */
  stamp(): string {
    // A missing file has no stamp. If a file is inaccessible, reading it reports the error.
    return `${stampAt(this.path)} ${stampAt(this.#homePins)}`;
  }

  /**
   * Reads both files while no other process writes them. Throws CONFIG_INVALID if one is not valid.
   */
  async read(): Promise<PinState> {
    return await withLock(`${this.#homePins}.lock`, () => Promise.resolve(this.#read()));
  }

  /**
   * Writes the pins that `change` returns, and returns the new state. Warns if the workspace is not
   * writable.
   */
  async write(change: (now: PinState) => Omit<PinState, "stamp">): Promise<PinState> {
    return await withLock(`${this.#homePins}.lock`, async () => {
      const before = this.#read();
      const { lock, home } = change(before);
      if (lockText(home) !== lockText(before.home)) {
        await writePrivate(this.#homePins, { path: this.#folder, ...JSON.parse(lockText(home)) });
      }
      const text = lockText(lock);
      if (text !== lockText(before.lock)) {
        await this.#writeLock(text).catch((error) =>
          this.#log.warn(`Cannot write the pins to ${quoted(this.path, 400)}: ${messageOf(error)}`)
        );
      }
      return { lock, home, stamp: this.stamp() };
    });
  }

  /** Stores a definition, so that a later one can be compared with it. */
  async keepDefinition(hash: string, definition: ToolDefinition): Promise<void> {
    await writePrivate(join(this.#definitions, `${hash}.json`), definition);
  }

  /** Returns the definition with a hash; undefined if it was not stored or its file was changed. */
  definition(hash: string): ToolDefinition | undefined {
    const parse = (text: string) => {
      const definition = parseExact(text) as unknown as ToolDefinition; // its hash is compared
      // guard: kept-definition
      if (definitionHash(definition) !== hash) throw new TypeError("it has another hash");
      return definition;
    };
    const path = join(this.#definitions, `${hash}.json`);
    return readPrivateText(path, parse, NO_WARNINGS);
  }

  #read(): PinState {
    // Taken before reading, so that the next check detects a change during the read.
    const stamp = this.stamp();
    const lock = textIn(this.path, LOCK_MAX);
    const home = textIn(this.#homePins);
    // guard: pins-unreadable
    return {
      lock: lock === undefined ? {} : parseLock(lock, this.path),
      // If the pins cannot be read, a changed tool must not look like a new one.
      home: home === undefined
        ? {}
        : parsePinned(home, { file: this.#homePins, folder: this.#folder }),
      stamp,
    };
  }

  async #writeLock(text: string): Promise<void> {
    await removeLeftovers(this.path);
    const before = readPlain(this.path);
    await writeWhole(this.path, {
      bytes: new TextEncoder().encode(text),
      mode: before?.mode ?? 0o644,
      expected: before?.bytes ?? "nothing",
    });
  }
}

function textIn(path: string, maxBytes?: number): string | undefined {
  const file = readPlain(path, maxBytes);
  if (file !== undefined && !isUtf8(file.bytes)) throw fileError(path, "it is not UTF-8 text");
  return file && new TextDecoder().decode(file.bytes);
}
