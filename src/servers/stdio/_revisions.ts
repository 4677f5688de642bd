/**
 * Remembers which servers on stdio support the stateless revision of MCP. They are asked once, after
 * they took `initialize`: some servers of the older revisions end at any other first message.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../../core/hash.ts";
import { isObject } from "../../core/json.ts";
import { drop, pruneCache, readCache, writeCache } from "../../io/kept.ts";
import type { ServerRevisions } from "../client/wire.ts";
import type { StdioValues } from "./program_host.ts";

/**
 * How long a server that supports the stateless revision may take to answer before `initialize` is
 * tried, in milliseconds. The answer comes when its program has loaded.
 */
const DISCOVER_MS = 15_000;
/** How long an answer is remembered, in milliseconds: the program may be updated. */
const REMEMBERED_MS = 7 * 86_400_000;
/** The maximum number of servers that are remembered. */
const FILES_MAX = 256;

/** The revisions of one server, in a file of the PML home. */
export class StdioRevisions implements ServerRevisions {
  readonly discoverMs: number | undefined;
  readonly #folder: string;
  readonly #file: string;
  #isStateless: boolean | undefined;

  /** Reads the facts about a server. */
  constructor(home: string, { name, definition }: Pick<StdioValues, "name" | "definition">) {
    const key = sha256(JSON.stringify([name, definition])).slice(0, 32);
    this.#folder = join(home, "lists");
    this.#file = join(this.#folder, `stdio-revision-${key}.json`);
    this.#isStateless = stateOf(readCache(this.#file));
    this.discoverMs = this.#isStateless ? DISCOVER_MS : undefined;
  }

  /** Whether the server has to be asked. */
  get isUnknown(): boolean {
    return this.#isStateless === undefined;
  }

  /** Remembers that the server has no stateless revision, or asks it again if it is slow. */
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
    drop(this.#file);
  }

  #store(hasNewest: boolean): void {
    this.#isStateless = hasNewest;
    try {
      writeCache(this.#file, { hasNewest, until: Date.now() + REMEMBERED_MS });
      pruneCache(this.#folder, { like: this.#file, most: FILES_MAX });
    } catch {
      // The next start asks again.
    }
  }
}

/** Returns the kept answer of a server; undefined if there is none, or it is too old. */
function stateOf(value: unknown): boolean | undefined {
  if (!isObject(value)) return undefined;
  const { hasNewest, until } = value;
  if (typeof hasNewest !== "boolean" || typeof until !== "number") return undefined;
  const remaining = until - Date.now();
  // A time too far ahead was written with a wrong clock.
  return remaining > 0 && remaining <= REMEMBERED_MS ? hasNewest : undefined;
}
