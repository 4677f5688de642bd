/**
 * Remembers which servers on stdio support the stateless revision of MCP. PML asks a server once,
 * after the server accepted `initialize`: some servers of the older revisions end if their first
 * message is another one.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../../core/hash.ts";
import { isObject } from "../../core/json.ts";
import { pruneCache, readCache, removeIfPossible, writeCache } from "../../io/cache_files.ts";
import type { ServerRevisions } from "../client/wire.ts";
import type { StdioValues } from "./program_host.ts";

/**
 * How long a server that supports the stateless revision may take to answer before `initialize` is
 * tried, in milliseconds. The answer comes when its program has loaded.
 */
const DISCOVER_MS = 15_000;
/**
 * How long an answer is remembered, in milliseconds. Afterwards PML asks again, because the program
 * may have been updated.
 */
const REMEMBERED_MS = 7 * 86_400_000;
/** The maximum number of servers whose answers are remembered. */
const FILES_MAX = 256;

/** Whether one server supports the stateless revision, stored in a file of the PML home. */
export class StdioRevisions implements ServerRevisions {
  readonly discoverMs: number | undefined;
  readonly #folder: string;
  readonly #file: string;
  #isStateless: boolean | undefined;

  /** Reads the stored answer of a server. */
  constructor(home: string, { name, definition }: Pick<StdioValues, "name" | "definition">) {
    const key = sha256(JSON.stringify([name, definition])).slice(0, 32);
    this.#folder = join(home, "lists");
    this.#file = join(this.#folder, `stdio-revision-${key}.json`);
    this.#isStateless = stateOf(readCache(this.#file));
    this.discoverMs = this.#isStateless ? DISCOVER_MS : undefined;
  }

  /** Whether there is no stored answer, so that PML has to ask the server. */
  get isUnknown(): boolean {
    return this.#isStateless === undefined;
  }

  /**
   * Remembers that the server lacks the stateless revision. Forgets the stored answer if the server
   * did not answer (`isSilent`).
   */
  foundOlder({ isSilent }: { readonly isSilent: boolean }): void {
    if (isSilent) this.forget();
    else this.#store(false);
  }

  /** Remembers that the server supports the stateless revision. */
  foundStateless(): void {
    this.#store(true);
  }

  /** Forgets the revision. The next start begins with `initialize`. */
  forget(): void {
    this.#isStateless = undefined;
    removeIfPossible(this.#file);
  }

  #store(isStateless: boolean): void {
    this.#isStateless = isStateless;
    try {
      writeCache(this.#file, { hasNewest: isStateless, until: Date.now() + REMEMBERED_MS });
      pruneCache(this.#folder, { like: this.#file, most: FILES_MAX });
    } catch {
      // The next start asks again.
    }
  }
}

/** Returns the stored answer of a server; undefined if there is none, or if it is too old. */
function stateOf(value: unknown): boolean | undefined {
  if (!isObject(value)) return undefined;
  const { hasNewest, until } = value;
  if (typeof hasNewest !== "boolean" || typeof until !== "number") return undefined;
  const remaining = until - Date.now();
  // A time too far in the future was written with a wrong clock.
  return remaining > 0 && remaining <= REMEMBERED_MS ? hasNewest : undefined;
}
