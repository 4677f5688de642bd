/**
 * Corrects typing mistakes: for a word of a query that no tool has, finds similar words of tools.
 *
 * @module
 */

import { dropOldest } from "../core/memo.ts";

/**
 * The length of the shortest words that are corrected. In these, only exchanged and missing letters
 * are corrected, because too many short words differ by one letter.
 */
const LENGTH_MIN = 3;
/** The length from which on a word may differ by two edits. */
const TWO_EDITS_LENGTH = 8;
/** The maximum number of cached words of queries. */
const CACHED_MAX = 1_000;
/** The maximum number of similar words. */
const SIMILAR_MAX = 3;
const LATIN = /^[a-z]+$/;
const CODE_OF_A = 97;

/** Words of one length. `letters` has one bit for each letter that a word contains. */
interface WordsOfLength {
  readonly words: string[];
  readonly ids: number[];
  readonly letters: number[];
}

/** The words of all tools, prepared for comparison. */
export class Spelling {
  readonly #byLength = new Map<number, WordsOfLength>();
  readonly #closestByWord = new Map<string, readonly number[]>();

  /** Prepares words with their numbers. */
  constructor(words: Iterable<readonly [word: string, id: number]>) {
    for (const [word, id] of words) {
      if (word.length < LENGTH_MIN || !LATIN.test(word)) continue;
      const group = this.#byLength.get(word.length) ?? { words: [], ids: [], letters: [] };
      this.#byLength.set(word.length, group);
      group.words.push(word);
      group.ids.push(id);
      group.letters.push(lettersOf(word));
    }
  }

  /**
   * Returns the numbers of the words that need the fewest edits. An edit inserts, removes or
   * replaces a letter, or exchanges two neighbours.
   */
  closest(word: string): readonly number[] {
    if (word.length < LENGTH_MIN || !LATIN.test(word)) return [];
    let closest = this.#closestByWord.get(word);
    if (closest === undefined) {
      this.#closestByWord.set(word, closest = this.#find(word));
      dropOldest(this.#closestByWord, CACHED_MAX);
    }
    return closest;
  }

  #find(word: string): readonly number[] {
    const isShort = word.length === LENGTH_MIN;
    const letters = lettersOf(word);
    let most = word.length < TWO_EDITS_LENGTH ? 1 : 2;
    let closest: number[] = [];
    for (let length = word.length - (isShort ? 0 : most); length <= word.length + most; length++) {
      const group = this.#byLength.get(length);
      if (group === undefined) continue;
      for (let at = 0; at < group.words.length; at++) {
        // An edit changes at most two letters of the set; a missing or exchanged letter at most
        // one.
        if (countBits(letters ^ (group.letters[at] ?? 0)) > (isShort ? 1 : 2 * most)) continue;
        const other = group.words[at] ?? "";
        // Most users type the first letter of a short word as the first or second letter.
        if (word.length < TWO_EDITS_LENGTH && other[0] !== word[0] && other[0] !== word[1]) {
          continue;
        }
        const edits = countEdits(word, other, most);
        if (edits > most) continue;
        if (edits < most) closest = [];
        most = edits;
        closest.push(group.ids[at] ?? 0);
      }
    }
    return closest.slice(0, SIMILAR_MAX);
  }
}

function lettersOf(word: string): number {
  let letters = 0;
  for (let at = 0; at < word.length; at++) letters |= 1 << (word.charCodeAt(at) - CODE_OF_A);
  return letters;
}

function countBits(set: number): number {
  let count = 0;
  for (let rest = set; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}

/** Returns the number of edits between two words; `most` + 1 if there are more. */
function countEdits(one: string, other: string, most: number): number {
  let beforeLast: number[] = [];
  let lastRow = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      let edits = Math.min(
        (lastRow[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (lastRow[j - 1] ?? 0) + (isSame ? 0 : 1),
      );
      const isExchange = i > 1 && j > 1 && one[i - 1] === other[j - 2] &&
        one[i - 2] === other[j - 1];
      if (isExchange) edits = Math.min(edits, (beforeLast[j - 2] ?? 0) + 1);
      row.push(edits);
    }
    if (Math.min(...row) > most) return most + 1;
    [beforeLast, lastRow] = [lastRow, row];
  }
  return lastRow[other.length] ?? most + 1;
}
