/**
 * Ranks tools by the words of a query: BM25F over weighted fields.
 *
 * @module
 */

import { FIELD_WEIGHTS, fieldsOf } from "./_fields.ts";
import { termsOf } from "./_terms.ts";
import type { CatalogEntry } from "./catalog.ts";

const K1 = 1.2;
const B = 0.75;
/** How much a tool gains whose whole name is asked for. */
const NAME_GAIN = 0.3;
/** What the score of a tool is worth that nobody has approved yet. */
const OFFER_WORTH = 0.9;
const MOST_QUERY_TERMS = 256;
/** How many tools are ranked at most, twice what is shown, and how many of one server. */
const MOST_RANKED = 200;
const MOST_OF_SERVER = 100;

/** A tool and how well it fits, on a scale that means nothing beyond its query. */
export interface Ranked {
  readonly entry: CatalogEntry;
  readonly score: number;
}

/** Where a term stands: in which tools, and how much it says of each. */
interface Posting {
  readonly slots: number[];
  readonly weights: number[];
}

/** Gives the best tools that have a word of the query and are allowed, in order, ties by id. */
export type Ranking = (
  query: string,
  allowed: (entry: CatalogEntry) => boolean,
) => readonly Ranked[];

/** Makes the ranking of tools, which have to come by id. */
export function makeRanking(entries: readonly CatalogEntry[]): Ranking {
  const documents = entries.map((entry) => fieldsOf(entry).map(termsOf));
  const names = documents.map(([name]) => [...new Set(name)]);
  const postings = postingsOf(documents);
  return (query, allowed) => {
    const terms = new Set([...new Set(termsOf(query))].slice(0, MOST_QUERY_TERMS));
    const scores = new Float64Array(entries.length);
    for (const term of terms) {
      const { slots, weights } = postings.get(term) ?? { slots: [], weights: [] };
      const rarity = Math.log(1 + (entries.length - slots.length + 0.5) / (slots.length + 0.5));
      slots.forEach((slot, at) => scores[slot] = (scores[slot] ?? 0) + rarity * (weights[at] ?? 0));
    }
    const ranked = entries.flatMap((entry, slot) => {
      const score = scores[slot] ?? 0;
      if (score === 0) return [];
      const name = names[slot] ?? [];
      const met = name.filter((term) => terms.has(term)).length / Math.max(name.length, 1);
      const worth = entry.server.isOffer ? OFFER_WORTH : 1;
      return [{ entry, score: score * (1 + NAME_GAIN * met) * worth }];
    });
    // The order of ids stays where the scores are the same.
    return best(ranked.sort((a, b) => b.score - a.score), allowed);
  };
}

/** Takes the best that are allowed, of no server so many that it could keep others out. */
function best(ranked: readonly Ranked[], allowed: (entry: CatalogEntry) => boolean): Ranked[] {
  const taken: Ranked[] = [];
  const counts = new Map<string, number>();
  for (const one of ranked) {
    if (taken.length >= MOST_RANKED) break;
    const { name } = one.entry.server;
    const count = counts.get(name) ?? 0;
    // The rules are asked last: they take longer than all the rest.
    if (count >= MOST_OF_SERVER || !allowed(one.entry)) continue;
    counts.set(name, count + 1);
    taken.push(one);
  }
  return taken;
}

type Terms = readonly string[];

function postingsOf(documents: readonly (readonly Terms[])[]): ReadonlyMap<string, Posting> {
  const means = FIELD_WEIGHTS.map((_, field) => {
    const total = documents.reduce((sum, fields) => sum + (fields[field]?.length ?? 0), 0);
    return Math.max(total / documents.length, 1);
  });
  const postings = new Map<string, Posting>();
  documents.forEach((fields, slot) => {
    for (const [term, weight] of weightsOf(fields, means)) {
      let posting = postings.get(term);
      if (!posting) postings.set(term, posting = { slots: [], weights: [] });
      posting.slots.push(slot);
      posting.weights.push(weight / (K1 + weight));
    }
  });
  return postings;
}

/** Adds up how often each term stands in the fields, by their weight and their length. */
function weightsOf(
  fields: readonly Terms[],
  means: readonly number[],
): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  fields.forEach((terms, field) => {
    const length = terms.length / (means[field] ?? 1);
    const one = (FIELD_WEIGHTS[field] ?? 0) / (1 - B + B * length);
    for (const term of terms) weights.set(term, (weights.get(term) ?? 0) + one);
  });
  return weights;
}
