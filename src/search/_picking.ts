/**
 * Takes the best tools by their scores, of no server so many that it could keep others out.
 *
 * @module
 */

import type { CatalogEntry } from "./catalog.ts";

/** The part of the best score from which a tool of another server fits nearly as well. */
const NEARLY = 0.6;

/** How many times what is taken is put in order at first: some may not be allowed. */
const AHEAD = 4;

/** A tool and how well it fits. */
export interface Ranked {
  readonly entry: CatalogEntry;
  /** The place of the tool among all. */
  readonly slot: number;
  readonly score: number;
}

/** How much is taken, and of what. */
export interface Picking {
  /** How many at most, all in all and of one server. */
  readonly most: number;
  readonly mostOfServer: number;
  readonly allowed: (entry: CatalogEntry) => boolean;
}

/** Gives the allowed tools that have a score, the best first, ties in the order of the tools. */
export function picked(
  entries: readonly CatalogEntry[],
  scores: Float64Array,
  { most, mostOfServer, allowed }: Picking,
): readonly Ranked[] {
  const taken: Ranked[] = [];
  const counts = new Map<string, number>();
  for (const slot of ordered(scores, most)) {
    if (taken.length >= most) break;
    const entry = entries[slot];
    if (entry === undefined) continue;
    const { name } = entry.server;
    const count = counts.get(name) ?? 0;
    // The rules are asked last: they take longer than all the rest.
    if (count >= mostOfServer || !allowed(entry)) continue;
    counts.set(name, count + 1);
    taken.push({ entry, slot, score: scores[slot] ?? 0 });
  }
  return taken;
}

/** Takes the best, but of one server no more than half while tools of others fit nearly as well. */
export function shared(ranked: readonly Ranked[], limit: number): readonly Ranked[] {
  const fitting = (ranked[0]?.score ?? 0) * NEARLY;
  const most = Math.ceil(limit / 2);
  const taken = new Map<string, number>();
  const first = ranked.filter(({ entry, score }) => {
    const count = (taken.get(entry.server.name) ?? 0) + 1;
    taken.set(entry.server.name, count);
    return score >= fitting && count <= most;
  }).slice(0, limit);
  const chosen = new Set(first);
  for (const hit of ranked) {
    if (chosen.size >= limit) break;
    chosen.add(hit);
  }
  return ranked.filter((hit) => chosen.has(hit));
}

/** Gives the places of what has a score, the best first; the many behind are put in order last. */
function* ordered(scores: Float64Array, most: number): Generator<number> {
  const values = scores.filter((score) => score > 0).sort();
  // Numbers alone are sorted much faster than places by their numbers.
  const least = values.at(-AHEAD * most) ?? 0;
  yield* placesOf(scores, (score) => score > 0 && score >= least);
  if (least > 0) yield* placesOf(scores, (score) => score > 0 && score < least);
}

function placesOf(scores: Float64Array, wanted: (score: number) => boolean): Uint32Array {
  const slots = new Uint32Array(scores.length);
  let count = 0;
  scores.forEach((score, slot) => {
    if (wanted(score)) slots[count++] = slot;
  });
  return slots.subarray(0, count)
    .sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
}
