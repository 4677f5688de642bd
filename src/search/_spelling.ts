/**
 * Finds the words of tools that are similar to a word of a query that no tool has, because it may
 * contain a typing mistake.
 *
 * @module
 */

import { dropOldest } from "../core/memo.ts";

/**
 * Shorter words are not corrected. In words of this length, only exchanges and missing letters are:
 * too many others differ by one letter.
 */
const SHORTEST = 3;
/** From this length on, a word may differ by two edits. */
const LONG = 8;
/** How many words of queries are cached. */
const MOST_CACHED = 1_000;
/** The maximum number of similar words. */
const MOST = 3;
const LATIN = /^[a-z]+$/;
const A = 97;

/** Words of one length, and for each the letters that it contains, one bit each. */
interface WordsOfLength {
  readonly words: string[];
  readonly ids: number[];
  readonly letters: number[];
}

/** The words of all tools, prepared for comparison. */
export class Spelling {
  readonly #byLength = new Map<number, WordsOfLength>();
  readonly #closest = new Map<string, readonly number[]>();

  /** Takes the words with their numbers. */
  constructor(words: Iterable<readonly [word: string, id: number]>) {
    for (const [word, id] of words) {
      if (word.length < SHORTEST || !LATIN.test(word)) continue;
      const group = this.#byLength.get(word.length) ?? { words: [], ids: [], letters: [] };
      this.#byLength.set(word.length, group);
      group.words.push(word);
      group.ids.push(id);
      group.letters.push(lettersOf(word));
    }
  }

  /**
   * Returns the numbers of the words that need the fewest edits. An edit inserts, removes or replaces
   * a letter, or exchanges two neighbours.
   */
  closest(word: string): readonly number[] {
    if (word.length < SHORTEST || !LATIN.test(word)) return [];
    let closest = this.#closest.get(word);
    if (closest === undefined) {
      this.#closest.set(word, closest = this.#find(word));
      dropOldest(this.#closest, MOST_CACHED);
    }
    return closest;
  }

  #find(word: string): readonly number[] {
    const isShort = word.length === SHORTEST;
    const letters = lettersOf(word);
    let most = word.length < LONG ? 1 : 2;
    let closest: number[] = [];
    for (let length = word.length - (isShort ? 0 : most); length <= word.length + most; length++) {
      const group = this.#byLength.get(length);
      if (group === undefined) continue;
      for (let at = 0; at < group.words.length; at++) {
        // An edit changes at most two letters of the set, and a missing letter one.
        if (bits(letters ^ (group.letters[at] ?? 0)) > (isShort ? 1 : 2 * most)) continue;
        const other = group.words[at] ?? "";
        // Most people type the first letter of a short word correctly.
        if (word.length < LONG && other[0] !== word[0] && other[0] !== word[1]) continue;
        const edits = editsBetween(word, other, most);
        if (edits > most) continue;
        if (edits < most) closest = [];
        most = edits;
        closest.push(group.ids[at] ?? 0);
      }
    }
    return closest.slice(0, MOST);
  }
}

function lettersOf(word: string): number {
  let letters = 0;
  for (let at = 0; at < word.length; at++) letters |= 1 << (word.charCodeAt(at) - A);
  return letters;
}

function bits(set: number): number {
  let count = 0;
  for (let rest = set; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

/** Returns the number of edits between two words; `most` + 1 if there are more. */
function editsBetween(one: string, other: string, most: number): number {
  let older: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      let edits = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (isSame ? 0 : 1),
      );
      const isExchange = i > 1 && j > 1 && one[i - 1] === other[j - 2] &&
        one[i - 2] === other[j - 1];
      if (isExchange) edits = Math.min(edits, (older[j - 2] ?? 0) + 1);
      row.push(edits);
    }
    if (Math.min(...row) > most) return most + 1;
    [older, last] = [last, row];
  }
  return last[other.length] ?? most + 1;
}
