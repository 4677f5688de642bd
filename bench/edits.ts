/**
 * Creates short requests with a typing mistake: the words of a tool's name, with one edit in one word.
 *
 * @module
 */

import type { CatalogEntry } from "../src/search/catalog.ts";
import { termsOf } from "../src/search/terms.ts";
import type { GoldQuery } from "./metrics.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** The minimum length of an edited word. */
const MIN_LENGTH = 4;
const MAX_WORDS = 2;

/** A request without and with the typing mistake. */
export interface EditedRequest extends GoldQuery {
  readonly edited: string;
}

/** Returns `count` requests for tools with unique names of one or two words. */
export function editedRequests(
  entries: readonly CatalogEntry[],
  { count, seed }: { readonly count: number; readonly seed: number },
): readonly EditedRequest[] {
  const random = seededRandom(seed);
  const names = Map.groupBy(entries, ({ tool }) => tool.name);
  const chosen = entries.filter(({ tool }) => names.get(tool.name)?.length === 1)
    .map((entry) => ({ entry, order: random() })).sort((a, b) => a.order - b.order);
  return chosen.flatMap(({ entry }) => {
    const words = entry.tool.name.replace(/([a-z])([A-Z])/g, "$1 $2").split(/[^A-Za-z0-9]+/);
    const long = words.flatMap((word, at) =>
      word.length >= MIN_LENGTH && /^[A-Za-z]+$/.test(word) && termsOf(word).length === 1
        ? [at]
        : []
    );
    const at = long[Math.floor(random() * long.length)];
    if (words.length > MAX_WORDS || at === undefined) return [];
    const edited = words.with(at, withEdit(words[at] ?? "", random)).join(" ");
    return [{ query: words.join(" "), edited, gold: [entry.id] }];
  }).slice(0, count);
}

/** Removes, exchanges, inserts or replaces a letter after the first. */
function withEdit(word: string, random: () => number): string {
  const at = 1 + Math.floor(random() * (word.length - 2));
  const letter = LETTERS[Math.floor(random() * LETTERS.length)] ?? "";
  const [before, after] = [word.slice(0, at), word.slice(at + 1)];
  return [
    before + after,
    `${before}${word[at + 1]}${word[at]}${word.slice(at + 2)}`,
    `${before}${letter}${word.slice(at)}`,
    before + letter + after,
  ][Math.floor(random() * 4)] ?? word;
}

function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
