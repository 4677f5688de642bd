/**
 * Picks the tools with the best scores, and limits how many come from one server.
 *
 * @module
 */

import type { CatalogEntry } from "./catalog.ts";

/**
 * A tool with at least this part of the best score is preferred to a further tool of a server that
 * already has half of the results.
 */
const SIMILAR_SCORE = 0.6;

/** The factor by which more tools are sorted if the rules exclude too many of the best tools. */
const SORTED_FACTOR = 4;
/** The number of ranges of scores in which tools are counted, to sort only the best tools. */
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
  /** The indices of the tools that can have a score. */
  readonly candidates: Uint32Array;
  /** The maximum number of tools. */
  readonly most: number;
  /** The maximum number of tools of one server. */
  readonly mostOfServer: number;
  readonly allowed: (entry: CatalogEntry) => boolean;
}

/**
 * Returns the allowed tools with a score, the best first. Equal scores keep the order of the tools.
 */
export function bestTools(
  entries: readonly CatalogEntry[],
  scores: Float64Array,
  { candidates, most, mostOfServer, allowed }: PickingLimits,
): readonly RankedTool[] {
  const picked: RankedTool[] = [];
  const counts = new Map<string, number>();
  for (const slot of sortedSlots(scores, { candidates, most })) {
    if (picked.length >= most) break;
    const entry = entries[slot];
    if (entry === undefined) continue;
    const { name } = entry.server;
    const count = counts.get(name) ?? 0;
    // The rules are checked last, because they take longest.
    if (count >= mostOfServer || !allowed(entry)) continue;
    counts.set(name, count + 1);
    picked.push({ entry, slot, score: scores[slot] ?? 0 });
  }
  return picked;
}

/**
 * Returns the best tools. At most half come from one server if tools of other servers have similar
 * scores. Servers that the request names have no such limit.
 */
export function limitServers<T extends RankedTool>(
  ranked: readonly T[],
  { limit, isWanted }: {
    readonly limit: number;
    /** Returns whether the request names this server. */
    readonly isWanted: (server: string) => boolean;
  },
): readonly T[] {
  const minScore = (ranked[0]?.score ?? 0) * SIMILAR_SCORE;
  const most = Math.ceil(limit / 2);
  const counts = new Map<string, number>();
  const preferred = ranked.filter(({ entry, score }) => {
    const { name } = entry.server;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return score >= minScore && (count <= most || isWanted(name));
  }).slice(0, limit);
  const chosen = new Set(preferred);
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
 * Yields the indices of tools with a score, the best first. Tools with lower scores are sorted only
 * if the caller needs them.
 */
function* sortedSlots(
  scores: Float64Array,
  { candidates, most }: Pick<PickingLimits, "candidates" | "most">,
): Generator<number> {
  let upper = Infinity;
  for (
    const min of [...minScores(scores, { candidates, counts: [most, SORTED_FACTOR * most] }), 0]
  ) {
    if (min >= upper) continue;
    const slots: number[] = [];
    // `!` here and below, because a check for undefined takes longer than the comparison.
    for (let at = 0; at < candidates.length; at++) {
      const slot = candidates[at]!;
      const score = scores[slot]!;
      if (score > 0 && score >= min && score < upper) slots.push(slot);
    }
    yield* slots.sort((a, b) => scores[b]! - scores[a]! || a - b);
    upper = min;
  }
}

/**
 * Returns, for each of the ascending `counts`, the score that about so many tools reach; 0 if fewer
 * tools have a score.
 */
function minScores(
  scores: Float64Array,
  { candidates, counts }: Pick<PickingLimits, "candidates"> & {
    readonly counts: readonly number[];
  },
): readonly number[] {
  let best = 0;
  for (let at = 0; at < candidates.length; at++) best = Math.max(best, scores[candidates[at]!]!);
  const steps = new Uint32Array(STEPS + 1);
  for (let at = 0; at < candidates.length; at++) {
    const step = Math.floor(scores[candidates[at]!]! / best * STEPS);
    steps[step] = steps[step]! + 1;
  }
  return counts.map((count) => {
    let remaining = count;
    let step = STEPS;
    while (step > 0 && remaining > steps[step]!) remaining -= steps[step--]!;
    return step * best / STEPS;
  });
}
