/**
 * Picks the tools with the best scores, and limits how many come from one server.
 *
 * @module
 */

import type { CatalogEntry } from "./catalog.ts";

/**
 * The part of the best score at which a tool of another server is preferred to too many of one
 * server.
 */
const NEARLY = 0.6;

/** How many times the wanted number of tools is sorted first, because some may not be allowed. */
const AHEAD = 4;
/** The number of steps into which scores are divided for that. */
const STEPS = 256;

/** A tool and its score. */
export interface RankedTool {
  readonly entry: CatalogEntry;
  /** The index of the tool among all tools. */
  readonly slot: number;
  readonly score: number;
}

/** The limits of picking. */
export interface PickingLimits {
  /** The tools that can have a score. */
  readonly among: Uint32Array;
  /** The maximum number of tools in all, and of one server. */
  readonly most: number;
  readonly mostOfServer: number;
  readonly allowed: (entry: CatalogEntry) => boolean;
}

/**
 * Returns the allowed tools with a score, the best first. Equal scores keep the order of the tools.
 */
export function bestTools(
  entries: readonly CatalogEntry[],
  scores: Float64Array,
  { among, most, mostOfServer, allowed }: PickingLimits,
): readonly RankedTool[] {
  const taken: RankedTool[] = [];
  const counts = new Map<string, number>();
  for (const slot of ordered(scores, { among, most })) {
    if (taken.length >= most) break;
    const entry = entries[slot];
    if (entry === undefined) continue;
    const { name } = entry.server;
    const count = counts.get(name) ?? 0;
    // The rules are checked last, because they take longest.
    if (count >= mostOfServer || !allowed(entry)) continue;
    counts.set(name, count + 1);
    taken.push({ entry, slot, score: scores[slot] ?? 0 });
  }
  return taken;
}

/**
 * Returns the best tools. Not more than half come from one server, as long as tools of others fit
 * nearly as well. Servers that the request names have no such limit.
 */
export function shared<T extends RankedTool>(
  ranked: readonly T[],
  { limit, isWanted }: {
    readonly limit: number;
    /** Returns whether the request names this server. */
    readonly isWanted: (server: string) => boolean;
  },
): readonly T[] {
  const fitting = (ranked[0]?.score ?? 0) * NEARLY;
  const most = Math.ceil(limit / 2);
  const taken = new Map<string, number>();
  const first = ranked.filter(({ entry, score }) => {
    const { name } = entry.server;
    const count = (taken.get(name) ?? 0) + 1;
    taken.set(name, count);
    return score >= fitting && (count <= most || isWanted(name));
  }).slice(0, limit);
  const chosen = new Set(first);
  for (const hit of ranked) {
    if (chosen.size >= limit) break;
    chosen.add(hit);
  }
  return ranked.filter((hit) => chosen.has(hit));
}

/** Returns whether a query contains the name of a server as words. */
export function namesServer(query: string, server: string): boolean {
  const name = plainWords(server);
  return name.trim() !== "" && plainWords(query).includes(name);
}

/** Returns the words of a text in lower case, each between spaces. */
function plainWords(text: string): string {
  return ` ${text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "").join(" ")} `;
}

/**
 * Yields the indices of tools with a score, the best first. The many low ones are sorted only if
 * they are needed.
 */
function* ordered(
  scores: Float64Array,
  { among, most }: Pick<PickingLimits, "among" | "most">,
): Generator<number> {
  const scoreOf = (slot: number) => scores[slot] ?? 0;
  const least = leastOf(scores, { among, most: AHEAD * most });
  const places = (matches: (score: number) => boolean) =>
    among.filter((slot) => matches(scoreOf(slot)))
      .sort((a, b) => scoreOf(b) - scoreOf(a) || a - b);
  yield* places((score) => score > 0 && score >= least);
  if (least > 0) yield* places((score) => score > 0 && score < least);
}

/** Returns a score that about `most` tools reach; 0 if fewer tools have a score. */
function leastOf(
  scores: Float64Array,
  { among, most }: Pick<PickingLimits, "among" | "most">,
): number {
  let best = 0;
  for (const slot of among) best = Math.max(best, scores[slot] ?? 0);
  const counts = new Uint32Array(STEPS + 1);
  for (const slot of among) {
    const step = Math.floor((scores[slot] ?? 0) / best * STEPS);
    counts[step] = (counts[step] ?? 0) + 1;
  }
  let remaining = most;
  let step = STEPS;
  while (step > 0 && remaining > (counts[step] ?? 0)) remaining -= counts[step--] ?? 0;
  return step * best / STEPS;
}
