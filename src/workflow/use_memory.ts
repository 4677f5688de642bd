/**
 * Remembers how tools were used: counts, times, the types of results, and what followed what. It is
 * kept in one file of the PML home and never leaves the machine.
 *
 * @module
 */

import type { ConfigOwner } from "../config/current_config.ts";
import type { Outcome, ToolResult } from "../protocol/call.ts";
import type { JsonObject } from "../core/json.ts";
import { dropOldest, memoized } from "../core/memo.ts";
import { outputOf } from "../protocol/output.ts";
import type { ResolvedCall } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { drop } from "../io/kept.ts";
import type { WarningLog } from "../io/private_files.ts";
import { definitionHash } from "../policy/integrity.ts";
import { termsOf } from "../search/terms.ts";
import { fittedUses, keepUses, readUses } from "./_memory_file.ts";
import { mergedShapes, shapeOf } from "./_result_shape.ts";
import { type Counts, mergedUse, stepOf, sum, timeAt, type ToolUse } from "./_tool_use.ts";

/** A call that reached its server. */
export interface UsedTool {
  readonly call: Pick<ResolvedCall, "id" | "arguments" | "via" | "actor" | "method" | "run">;
  /** The definition that it passed with; undefined if it was no call of a tool. */
  readonly definition: ToolDefinition | undefined;
  /** When it began and ended, as `performance.now()` says. */
  readonly since: number;
  readonly ended: number;
  /** Its outcome; undefined if it failed. */
  readonly outcome: Outcome | undefined;
}

const FLUSH_MS = 60_000;
const MOST_SESSIONS = 100;
const MOST_SEARCHES = 20;
const MOST_WORDS = 20;
/** A call belongs to the call or the search before it only within this time. */
const NEXT_MS = 10 * 60_000;
/** A longer text is not parsed to learn its shape. */
const MOST_TEXT = 100_000;
/** So many uses count half. */
const DOUBT = 1;
/** The least part of the words of a query that makes it like an earlier one. */
const LIKE = 0.4;

/** What one client, or one run, did last. */
interface Session {
  tool: ToolId | undefined;
  hash: string;
  ended: number;
  readonly searches: Searched[];
}

interface Searched {
  readonly at: number;
  readonly words: readonly string[];
  /** The tools that it found and that were not called since. */
  readonly found: Set<ToolId>;
}

/** The use of a tool since the file was written, which grows with each call. */
type FreshUse = { -readonly [K in keyof ToolUse]: ToolUse[K] };
type Grown = Record<string, number>;

/** The use of a tool as a person sees it. */
export interface ShownUse {
  readonly id: ToolId;
  readonly definition: string;
  readonly used: string;
  readonly calls: number;
  readonly errors: number;
  readonly median_ms: number;
  readonly p95_ms: number;
  /** The JSON Schema of its results. */
  readonly result?: JsonObject;
  /** How often other tools were called next. */
  readonly next: Counts;
}

/** Remembers the use of tools. */
export class UseMemory implements Disposable {
  /** The file that it is kept in. */
  readonly path: string;
  readonly #policy: ConfigOwner<"memory">;
  readonly #log: WarningLog;
  readonly #hash = memoized(definitionHash);
  readonly #sessions = new Map<string, Session>();
  /** What the file held when it was read last. */
  #kept: ReadonlyMap<ToolId, ToolUse> | undefined;
  /** What is not in the file yet. */
  #fresh = new Map<ToolId, FreshUse>();
  /** Both together, until the next call. */
  #all: ReadonlyMap<ToolId, ToolUse> | undefined;
  #flushed = performance.now();

  /** Takes the file, which is read when it is needed, and the owner of the switch `memory`. */
  constructor(path: string, policy: ConfigOwner<"memory">, log: WarningLog) {
    this.path = path;
    this.#policy = policy;
    this.#log = log;
  }

  /** Remembers a call of a tool that reached its server. */
  note({ call, definition, since, ended, outcome }: UsedTool): void {
    if (definition === undefined || call.method !== undefined || call.via === "server") return;
    if (!this.#policy.config.memory) return;
    const hash = this.#hash(definition);
    const use = this.#freshUse(call.id, hash);
    const isError = outcome?.kind !== "result" || outcome.result.isError === true;
    use.at = Date.now();
    use.calls++;
    if (isError) use.errors++;
    count(use.times, String(stepOf(ended - since)));
    this.#all = undefined;
    if (!isError) {
      this.#follows({ call, since, hash, ended });
      // A shape takes longer than the rest, so it is taken of the first, second, fourth ... call.
      const isLooked = (use.calls & (use.calls - 1)) === 0 && outcome.task === undefined;
      if (isLooked && sizeOf(outcome.result.content) <= MOST_TEXT) {
        use.shape = mergedShapes(use.shape, shapeOf(outputOf(outcome.result), call.arguments));
      }
    }
    if (ended - this.#flushed > FLUSH_MS) this.flush();
  }

  /** Remembers what a search of a client found, so that its next calls say what fitted. */
  searched(
    actor: string,
    { query, found }: { readonly query: string; readonly found: readonly ToolId[] },
  ): void {
    if (!this.#policy.config.memory) return;
    const { searches } = this.#session(actor);
    searches.push({ at: performance.now(), words: wordsOf(query), found: new Set(found) });
    if (searches.length > MOST_SEARCHES) searches.shift();
  }

  /** Returns the tools that were called next after a tool, each with its part of all such calls. */
  next(id: ToolId): ReadonlyMap<ToolId, number> {
    const next = this.tools().get(id)?.next ?? {};
    const all = sum(next) + DOUBT;
    // Only names of tools are kept there.
    return new Map(Object.entries(next).map(([name, count]) => [name as ToolId, count / all]));
  }

  /**
   * Returns how well tools fit, from 0 to 1: they were used for queries like this one. Tools of
   * which nothing is known are missing.
   */
  fit(query: string): ReadonlyMap<ToolId, number> {
    const tools = this.tools();
    const fits = new Map<ToolId, number>();
    if (tools.size === 0) return fits;
    const worth = worthOf(wordsOf(query), [...tools.values()]);
    const total = [...worth.values()].reduce((all, one) => all + one, 0);
    for (const [id, { words, calls, errors }] of tools) {
      let like = 0;
      for (const [word, one] of worth) if (Object.hasOwn(words, word)) like += one / total;
      const fit = like * (calls - errors) / (calls + DOUBT);
      if (like >= LIKE && fit > 0) fits.set(id, fit);
    }
    return fits;
  }

  /**
   * Returns the JSON Schema of the results of a tool, if some were seen with this definition or with
   * the one that has this hash.
   */
  observed(id: ToolId, definition: ToolDefinition | string): JsonObject | undefined {
    const use = this.tools().get(id);
    const hash = typeof definition === "string" ? definition : this.#hash(definition);
    // A shape holds plain JSON alone.
    // guard: memory-definition
    return use?.hash === hash ? use.shape as JsonObject | undefined : undefined;
  }

  /** Returns the use of all tools; none if nothing may be remembered. */
  tools(): ReadonlyMap<ToolId, ToolUse> {
    if (!this.#policy.config.memory) return new Map();
    this.#kept ??= this.#read();
    return this.#all ??= this.#merged(this.#kept);
  }

  /** Returns the use of all tools for a person, the last used first. */
  shown(): readonly ShownUse[] {
    const uses = [...this.tools()].sort(([, one], [, other]) => other.at - one.at);
    return uses.map(([id, { hash, at, calls, errors, next, shape, ...use }]) => ({
      id,
      definition: hash,
      used: new Date(at).toISOString(),
      ...{ calls, errors, median_ms: timeAt(use, 0.5), p95_ms: timeAt(use, 0.95) },
      ...(shape && { result: shape as JsonObject }),
      next: Object.fromEntries(Object.entries(next).sort(([, one], [, other]) => other - one)),
    }));
  }

  /** Writes what is new. Other processes write the same file, so it is read again before. */
  flush(): void {
    this.#flushed = performance.now();
    if (this.#fresh.size === 0 || !this.#policy.config.memory) return;
    this.#kept = this.#all = fittedUses(this.#merged(this.#read()));
    this.#fresh.clear();
    try {
      keepUses(this.path, this.#kept);
    } catch (error) {
      this.#log.warn(`Cannot write what is remembered of tools: ${error}`);
    }
  }

  /** Forgets everything. */
  clear(): void {
    this.#fresh.clear();
    this.#kept = this.#all = undefined;
    drop(this.path);
  }

  /** Writes what is new. */
  [Symbol.dispose](): void {
    this.flush();
  }

  /** Notes what a call followed: the call before it, and the searches that found its tool. */
  #follows(
    { call: { id, run, actor }, since, hash, ended }: Pick<UsedTool, "call" | "since"> & {
      readonly hash: string;
      readonly ended: number;
    },
  ): void {
    const session = this.#session(run ?? actor);
    const { tool: before } = session;
    const isNext = session.ended <= since && isNear(session.ended);
    if (before !== undefined && before !== id && isNext) {
      count(this.#freshUse(before, session.hash).next, id);
    }
    Object.assign(session, { tool: id, hash, ended });
    const { words } = this.#freshUse(id, hash);
    for (const { at, words: said, found } of this.#sessions.get(actor)?.searches ?? []) {
      if (isNear(at) && found.delete(id)) { for (const word of said) count(words, word); }
    }
  }

  #freshUse(id: ToolId, hash: string): FreshUse {
    let use = this.#fresh.get(id);
    if (use?.hash !== hash) {
      use = { hash, at: Date.now(), calls: 0, errors: 0, times: {}, next: {}, words: {} };
      this.#fresh.set(id, use);
    }
    return use;
  }

  #session(name: string): Session {
    let session = this.#sessions.get(name);
    if (session === undefined) {
      session = { tool: undefined, hash: "", ended: 0, searches: [] };
      this.#sessions.set(name, session);
      dropOldest(this.#sessions, MOST_SESSIONS);
    }
    return session;
  }

  #merged(kept: ReadonlyMap<ToolId, ToolUse>): ReadonlyMap<ToolId, ToolUse> {
    const all = new Map(kept);
    // What is kept now must not grow with the next call.
    for (const [id, use] of this.#fresh) {
      const before = all.get(id);
      // A tool that was forgotten does not come back because another one followed it.
      if (before !== undefined || use.calls > 0) {
        all.set(id, mergedUse(before, structuredClone(use)));
      }
    }
    return all;
  }

  #read(): ReadonlyMap<ToolId, ToolUse> {
    try {
      return readUses(this.path);
    } catch (error) {
      this.#log.warn(`Cannot read what is remembered of tools, so it begins anew: ${error}`);
      return new Map();
    }
  }
}

/** Returns the words of a query as hashes: enough to know them again. */
function wordsOf(query: string): readonly string[] {
  const terms = [...new Set(termsOf(query.slice(0, MOST_TEXT)))].slice(0, MOST_WORDS);
  return terms.map((term) => {
    let hash = 0x811c9dc5;
    for (let at = 0; at < term.length; at++) {
      hash = Math.imul(hash ^ term.charCodeAt(at), 0x01000193);
    }
    return (hash >>> 0).toString(36);
  });
}

/** Returns what each word is worth: more if fewer tools were found by it. */
function worthOf(
  words: readonly string[],
  tools: readonly ToolUse[],
): ReadonlyMap<string, number> {
  return new Map(words.map((word) => {
    const known = tools.filter((use) => Object.hasOwn(use.words, word)).length;
    return [word, Math.log(1 + tools.length / Math.max(known, 1))];
  }));
}

function isNear(time: number): boolean {
  return performance.now() - time < NEXT_MS;
}

function count(counts: Counts, name: string): void {
  // The counts of fresh use grow.
  const grown = counts as Grown;
  grown[name] = (grown[name] ?? 0) + 1;
}

function sizeOf(content: ToolResult["content"]): number {
  return content.reduce((size, { text }) => size + (typeof text === "string" ? text.length : 0), 0);
}
