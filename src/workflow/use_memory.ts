/**
 * Records how tools were used: counts, times, types of results, and the order of calls. The record
 * is a file in the PML home for each workspace and identity, and never leaves the machine.
 *
 * @module
 */

import { messageOf } from "../core/errors.ts";
import type { ConfigOwner } from "../config/current_config.ts";
import { sha256 } from "../core/hash.ts";
import type { Outcome, ToolResult } from "../protocol/call.ts";
import { type Json, type JsonObject, objectOf, sortedJsonText } from "../core/json.ts";
import { dropOldest, memoized } from "../core/memo.ts";
import { outputOf } from "../protocol/output.ts";
import type { ResolvedCall } from "../servers/server.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import { removeIfPossible } from "../io/cache_files.ts";
import type { WarningLog } from "../io/private_files.ts";
import { definitionHash } from "../policy/integrity.ts";
import { termsOf } from "../search/terms.ts";
import { limitUses, readUses, writeUses } from "./_memory_file.ts";
import { mergeLimited, type Shape, shapeOf } from "./_result_shape.ts";
import {
  type Counts,
  durationStep,
  mergeUse,
  percentileMs,
  sum,
  type ToolUse,
} from "./_tool_use.ts";

/** Calls of one tool with different arguments whose results have the same shape. */
interface AgreeingCalls {
  /** The hash of the tool's definition. */
  readonly hash: string;
  /** The shape, as JSON. */
  readonly text: string;
  /** The hashes of the arguments of each call. */
  readonly calls: Set<string>;
}

/** A call that reached its server. */
export interface FinishedCall {
  readonly call: Pick<ResolvedCall, "id" | "arguments" | "via" | "actor" | "method" | "run">;
  /** The definition that was checked for the call; undefined for requests other than tool calls. */
  readonly definition: ToolDefinition | undefined;
  /** Start and end of the call, as returned by `performance.now()`. */
  readonly since: number;
  readonly ended: number;
  /** The outcome; undefined if the call failed. */
  readonly outcome: Outcome | undefined;
}

/** A call writes the file if the last write was longer ago, in milliseconds. */
const FLUSH_MS = 60_000;
/** How many calls with different arguments must return the same shape if results are only text. */
const AGREEING_MIN = 3;
/** The number of calls of a tool after which only the results of some calls are compared. */
const COMPARED_MAX = 64;
/** Names of arguments that name a file or a page. */
const CONTENT_ARGUMENT = /(?:^|_)(?:paths?|files?|file_?names?|ur[il]s?|href|page|document)$/i;
/** The maximum numbers of sessions, of searches of a session, and of words of a query. */
const MOST_SESSIONS = 100;
const MOST_SEARCHES = 20;
const MOST_WORDS = 20;
/** The longest time between a call and the call or search that it follows. */
const NEXT_MS = 10 * 60_000;
/** The maximum length of a text that is parsed for its shape, in characters. */
const MOST_TEXT = 100_000;
/** The maximum age of the last use of a recently used tool, and the maximum number of these. */
const RECENT_MS = 14 * 24 * 60 * 60_000;
const RECENT_MAX = 8;
/** Added to the number of calls, so that a share of few calls is lower: 1 of 1 becomes one half. */
const DOUBT = 1;
/** A query is similar to earlier queries if it shares at least this weighted part of its words. */
const SIMILARITY_MIN = 0.4;

/** The latest call of one client or one run, and its latest searches. */
interface UseSession {
  /** The tool of the latest call, the hash of its definition, and the end of the call. */
  tool: ToolId | undefined;
  hash: string;
  ended: number;
  readonly searches: RecordedSearch[];
}

interface RecordedSearch {
  readonly at: number;
  readonly words: readonly string[];
  /** The found tools that have not been called since. */
  readonly tools: Set<ToolId>;
}

/** The use of a tool since the last write of the file. Each call updates it. */
type FreshUse = { -readonly [K in keyof ToolUse]: ToolUse[K] };
type MutableCounts = Record<string, number>;

/** The use of a tool, as shown to the user. */
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
  /** The tools that were called directly after this tool, with the number of these calls. */
  readonly next: Counts;
}

/** Records the use of tools. */
export class UseMemory implements Disposable {
  /** The path of the file. */
  readonly path: string;
  readonly #common: string | undefined;
  readonly #policy: ConfigOwner<"memory">;
  readonly #log: WarningLog;
  readonly #hash = memoized(definitionHash);
  readonly #sessions = new Map<string, UseSession>();
  /** The latest calls with equal shapes of results, for tools without a known shape. */
  readonly #agreeing = new Map<ToolId, AgreeingCalls>();
  /** The content of the file at the last read. */
  #uses: ReadonlyMap<ToolId, ToolUse> | undefined;
  /** The use that is not in the file yet. */
  #fresh = new Map<ToolId, FreshUse>();
  /** The merged use, cached until the next call. */
  #all: ReadonlyMap<ToolId, ToolUse> | undefined;
  #flushedAt = performance.now();

  /**
   * Creates the record. The file is read on demand. If it is missing, PML reads the counts of
   * `common`, the file that earlier versions used for all workspaces. `policy` has the option
   * `memory`.
   */
  constructor(
    { path, common }: { readonly path: string; readonly common?: string },
    policy: ConfigOwner<"memory">,
    log: WarningLog,
  ) {
    this.path = path;
    this.#common = common;
    this.#policy = policy;
    this.#log = log;
  }

  /** Records a tool call that reached its server. */
  recordCall({ call, definition, since, ended, outcome }: FinishedCall): void {
    if (definition === undefined || call.method !== undefined || call.via === "server") return;
    if (!this.#policy.config.memory) return;
    const hash = this.#hash(definition);
    const use = this.#freshUse(call.id, hash);
    const isError = outcome?.kind !== "result" || outcome.result.isError === true;
    use.at = Date.now();
    use.calls++;
    if (isError) use.errors++;
    count(use.times, String(durationStep(ended - since)));
    this.#all = undefined;
    if (!isError) {
      this.#recordOrder({ call, since, hash, ended });
      if (outcome.task === undefined && sizeOf(outcome.result.content) <= MOST_TEXT) {
        const shape = this.#learnShape(use, { call, definition, result: outcome.result });
        if (shape !== undefined) use.shape = mergeLimited(use.shape, shape);
      }
    }
    if (ended - this.#flushedAt > FLUSH_MS) this.flush();
  }

  /** Records the tools that a search found. A later call of one of them adds the words to its use. */
  recordSearch(
    actor: string,
    { query, foundTools: tools }: {
      readonly query: string;
      readonly foundTools: readonly ToolId[];
    },
  ): void {
    if (!this.#policy.config.memory) return;
    const { searches } = this.#session(actor);
    searches.push({ at: performance.now(), words: hashWords(query), tools: new Set(tools) });
    if (searches.length > MOST_SEARCHES) searches.shift();
  }

  /** Returns the tools that were called next after a tool, each with its share of these calls. */
  nextTools(id: ToolId): ReadonlyMap<ToolId, number> {
    const next = this.usesByTool().get(id)?.next ?? {};
    const all = sum(next) + DOUBT;
    // The keys are ids of tools.
    return new Map(Object.entries(next).map(([name, count]) => [name as ToolId, count / all]));
  }

  /**
   * Returns how often tools were used after similar queries, as scores from 0 to 1. Tools without
   * such use are missing.
   */
  fitScores(query: string): ReadonlyMap<ToolId, number> {
    const tools = this.usesByTool();
    const fits = new Map<ToolId, number>();
    if (tools.size === 0) return fits;
    const weights = wordWeights(hashWords(query), [...tools.values()]);
    const total = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
    for (const [id, { words, calls, errors }] of tools) {
      let similarity = 0;
      for (const [word, weight] of weights) {
        if (Object.hasOwn(words, word)) similarity += weight / total;
      }
      const fit = similarity * (calls - errors) / (calls + DOUBT);
      if (similarity >= SIMILARITY_MIN && fit > 0) fits.set(id, fit);
    }
    return fits;
  }

  /**
   * Returns the JSON Schema of the observed results of a tool with this definition, or with this
   * hash of a definition; undefined without results.
   */
  observedSchema(id: ToolId, definition: ToolDefinition | string): JsonObject | undefined {
    const use = this.usesByTool().get(id);
    const hash = typeof definition === "string" ? definition : this.#hash(definition);
    // A shape is plain JSON.
    // guard: memory-definition
    return use?.hash === hash ? use.shape as JsonObject | undefined : undefined;
  }

  /** Returns the use of all tools; empty if `memory` is off. */
  usesByTool(): ReadonlyMap<ToolId, ToolUse> {
    if (!this.#policy.config.memory) return new Map();
    this.#uses ??= this.#read();
    return this.#all ??= this.#mergeFresh(this.#uses);
  }

  /** Returns the use of all tools for the user, the most recently used first. */
  recentUses(): readonly ShownUse[] {
    const uses = [...this.usesByTool()].sort(([, one], [, other]) => other.at - one.at);
    return uses.map(([id, { hash, at, calls, errors, next, shape, ...use }]) => ({
      id,
      definition: hash,
      used: new Date(at).toISOString(),
      calls,
      errors,
      median_ms: percentileMs(use, 0.5),
      p95_ms: percentileMs(use, 0.95),
      ...(shape && { result: shape as JsonObject }),
      next: Object.fromEntries(Object.entries(next).sort(([, one], [, other]) => other - one)),
    }));
  }

  /** Returns the tools that were recently used with success, the latest first. */
  recentTools(): readonly ToolId[] {
    const since = Date.now() - RECENT_MS;
    return [...this.usesByTool()].filter(([, { at, calls, errors }]) =>
      at > since && calls > errors
    )
      .sort(([, one], [, other]) => other.at - one.at)
      .slice(0, RECENT_MAX)
      .map(([id]) => id);
  }

  /** Writes new use. Reads the file again first, because other processes write it, too. */
  flush(): void {
    this.#flushedAt = performance.now();
    if (this.#fresh.size === 0 || !this.#policy.config.memory) return;
    this.#uses = this.#all = limitUses(this.#mergeFresh(this.#read()));
    this.#fresh.clear();
    try {
      writeUses(this.path, this.#uses);
    } catch (error) {
      this.#log.warn(`Cannot write the record of tool use: ${messageOf(error)}`);
    }
  }

  /** Deletes the whole record. */
  clear(): void {
    this.#fresh.clear();
    this.#agreeing.clear();
    this.#uses = this.#all = undefined;
    removeIfPossible(this.path);
    if (this.#common !== undefined) removeIfPossible(this.#common);
  }

  /** Writes new use. */
  [Symbol.dispose](): void {
    this.flush();
  }

  /**
   * Returns the shape of a result if later results probably have the same shape: the shape of
   * structured content, or a shape that three calls with different arguments returned. The content
   * of files and pages differs, so texts of tools that read them have no shape.
   */
  #learnShape(
    use: FreshUse,
    { call: { id, arguments: args }, definition, result }:
      & Pick<FinishedCall, "call">
      & { readonly definition: ToolDefinition; readonly result: ToolResult },
  ): Shape | undefined {
    // A shape is slow to compute, so the more calls a tool has had, the fewer of them update it.
    if (result.structuredContent !== undefined || use.shape !== undefined) {
      return isPowerOfTwo(use.calls) ? shapeOf(outputOf(result), args) : undefined;
    }
    if (use.calls > COMPARED_MAX && !isPowerOfTwo(use.calls)) return undefined;
    if (readsContent(definition)) return undefined;
    const shape = shapeOf(outputOf(result), args);
    const text = sortedJsonText(shape as unknown as Json);
    const before = this.#agreeing.get(id);
    const isSame = before?.hash === use.hash && before.text === text;
    const calls = isSame ? before.calls : new Set<string>();
    calls.add(sha256(sortedJsonText(args)));
    this.#agreeing.set(id, { hash: use.hash, text, calls });
    dropOldest(this.#agreeing, MOST_SESSIONS);
    if (calls.size < AGREEING_MIN) return undefined;
    this.#agreeing.delete(id);
    return shape;
  }

  /** Records that a call followed the previous call and the searches that found its tool. */
  #recordOrder(
    { call: { id, run, actor }, since, hash, ended }: Pick<FinishedCall, "call" | "since"> & {
      readonly hash: string;
      readonly ended: number;
    },
  ): void {
    const session = this.#session(run ?? actor);
    const { tool: previous } = session;
    // A call that began before the end of the previous call does not follow it.
    const isNext = session.ended <= since && isRecent(session.ended);
    if (previous !== undefined && previous !== id && isNext) {
      count(this.#freshUse(previous, session.hash).next, id);
    }
    Object.assign(session, { tool: id, hash, ended });
    const { words } = this.#freshUse(id, hash);
    for (const { at, words: queryWords, tools } of this.#sessions.get(actor)?.searches ?? []) {
      if (isRecent(at) && tools.delete(id)) { for (const word of queryWords) count(words, word); }
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

  #session(name: string): UseSession {
    let session = this.#sessions.get(name);
    if (session === undefined) {
      session = { tool: undefined, hash: "", ended: 0, searches: [] };
      this.#sessions.set(name, session);
      dropOldest(this.#sessions, MOST_SESSIONS);
    }
    return session;
  }

  #mergeFresh(uses: ReadonlyMap<ToolId, ToolUse>): ReadonlyMap<ToolId, ToolUse> {
    const all = new Map(uses);
    // Copies the use, because the next call changes it.
    for (const [id, use] of this.#fresh) {
      const before = all.get(id);
      // A deleted tool does not reappear only because another tool followed it.
      if (before !== undefined || use.calls > 0) {
        all.set(id, mergeUse(before, structuredClone(use)));
      }
    }
    return all;
  }

  #read(): ReadonlyMap<ToolId, ToolUse> {
    try {
      const uses = readUses(this.path);
      if (uses !== undefined) return uses;
      const common = this.#common === undefined ? undefined : readUses(this.#common);
      // The shapes may be from results in another workspace, so they are not read.
      return new Map([...common ?? []].map(([id, { shape: _, ...use }]) => [id, use]));
    } catch (error) {
      this.#log.warn(
        `Cannot read the record of tool use: ${messageOf(error)}. PML starts a new record`,
      );
      return new Map();
    }
  }
}

function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}

/** Returns whether a tool reads a file or a page that its arguments name. */
function readsContent({ inputSchema }: ToolDefinition): boolean {
  const names = Object.keys(objectOf(objectOf(inputSchema).properties));
  return names.some((name) => CONTENT_ARGUMENT.test(name.replace(/([a-z\d])([A-Z])/g, "$1_$2")));
}

/** Returns hashes of the words of a query. Hashes are enough to recognize the same words. */
function hashWords(query: string): readonly string[] {
  const terms = [...new Set(termsOf(query.slice(0, MOST_TEXT)))].slice(0, MOST_WORDS);
  return terms.map((term) => {
    let hash = 0x811c9dc5;
    for (let at = 0; at < term.length; at++) {
      hash = Math.imul(hash ^ term.charCodeAt(at), 0x01000193);
    }
    return (hash >>> 0).toString(36);
  });
}

/** Returns the weight of each word. A word that found fewer tools has more weight. */
function wordWeights(
  words: readonly string[],
  tools: readonly ToolUse[],
): ReadonlyMap<string, number> {
  return new Map(words.map((word) => {
    const count = tools.filter((use) => Object.hasOwn(use.words, word)).length;
    return [word, Math.log(1 + tools.length / Math.max(count, 1))];
  }));
}

function isRecent(time: number): boolean {
  return performance.now() - time < NEXT_MS;
}

function count(counts: Counts, name: string): void {
  // The counts of fresh use are mutable.
  const mutable = counts as MutableCounts;
  mutable[name] = (mutable[name] ?? 0) + 1;
}

function sizeOf(content: ToolResult["content"]): number {
  return content.reduce((size, { text }) => size + (typeof text === "string" ? text.length : 0), 0);
}
