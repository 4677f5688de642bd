/**
 * Records in the PML home, for some minutes, which servers did not answer within the time limit of a
 * start, so that later commands do not wait for them again.
 *
 * @module
 */

import { join } from "node:path";
import { durationText } from "../core/amounts.ts";
import { ERROR_CODES, PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { isObject } from "../core/json.ts";
import { pruneCache, readCache, removeIfPossible, writeCache } from "./cache_files.ts";

/** How long a start is remembered, in milliseconds. */
const REMEMBERED_MS = 300_000;
/** The maximum number of files, over all servers and workspaces. */
const FILES_MAX = 64;

/** A server, and everything that its start depends on, without secrets. */
export interface StartKey {
  readonly name: string;
  readonly definition: unknown;
}

/** Where servers are started. */
interface StartPlace {
  /** The PML home. */
  readonly home: string;
  /** The workspace now. */
  readonly workspace: string;
}

/** The starts that took too long, of all processes. */
export class LateStarts {
  readonly #place: StartPlace;
  readonly #folder: string;

  /** Takes the place of the starts. `folder` is a folder of the PML home. */
  constructor(place: StartPlace, folder = "late_starts") {
    this.#place = place;
    this.#folder = join(place.home, folder);
  }

  /** Remembers the error of a start that took too long. Ignores a failed write. */
  record(key: StartKey, { code, message, hint }: PmlError): void {
    const file = this.#fileOf(key);
    try {
      writeCache(file, { at: Date.now(), code, message, hint });
      pruneCache(this.#folder, { like: file, most: FILES_MAX });
    } catch {
      // The next command waits as long again.
    }
  }

  /** Returns the error of the last start, with its age; undefined if none is remembered. */
  errorOf(key: StartKey): PmlError | undefined {
    const file = this.#fileOf(key);
    const note = readCache(file);
    if (note === undefined) return undefined;
    const { at, message, hint, code: name } = isObject(note) ? note : {};
    const code = ERROR_CODES.find((known) => known === name);
    const age = typeof at === "number" ? Date.now() - at : Infinity;
    // A time in the future comes from a clock that was wrong.
    if (age < 0 || age > REMEMBERED_MS || typeof message !== "string" || code === undefined) {
      removeIfPossible(file);
      return undefined;
    }
    const unit = age < 120_000 ? 1_000 : 60_000;
    const ago = durationText(Math.max(1, Math.round(age / unit)) * unit);
    const again = `\`pml tools ${key.name} --refresh\` tries again, and waits`;
    return new PmlError(code, `${message} (${ago} ago)`, {
      hint: typeof hint === "string" ? `${again}. ${hint}` : again,
    });
  }

  /** Forgets a server: it answered, or the user wants to wait for it. */
  forget(key: StartKey): void {
    removeIfPossible(this.#fileOf(key));
  }

  #fileOf({ name, definition }: StartKey): string {
    const hash = sha256(JSON.stringify([name, definition, this.#place.workspace])).slice(0, 32);
    return join(this.#folder, `start-${hash}.json`);
  }
}
