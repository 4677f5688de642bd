/**
 * Estimates how many tokens a text costs a model, without the tables that exact counting needs.
 *
 * @module
 */

import { type Json, type JsonObject, listOf, objectOf, textOf } from "./json.ts";
import { textOfItems } from "./json_text.ts";

/**
 * The approximate pieces into which o200k splits a text: a sign or blank with the word after it, up
 * to three digits, signs in a row, blanks. Groups: the sign before a word, a word of plain letters,
 * a word of other letters, signs. No alternative can begin where another one ends, so a text is
 * read once.
 */
const PIECES =
  /([^\r\n\p{L}\p{N}]?)(?:([A-Z]*[a-z]+|[A-Z]+)(?![a-z\xc0-\u024f])|([\p{L}\p{M}]+))|\p{N}{1,3}| ?([^\s\p{L}\p{N}]+)[\r\n/]*|\s+(?=\s\S)|\s+/gu;
/**
 * The pieces of an ASCII text, as most texts are. The first use of a Unicode class, as in `PIECES`,
 * loads tables of some megabytes.
 */
const PLAIN =
  /([^\r\nA-Za-z0-9]?)(?:([A-Z]*[a-z]+|[A-Z]+)(?![a-z])|([A-Za-z]+))|[0-9]{1,3}| ?([^\sA-Za-z0-9]+)[\r\n/]*|\s+(?=\s\S)|\s+/g;
const NOT_PLAIN = /[^\0-\x7f]/;
/** A sign or blank that is repeated 10 to 40 times, which costs hardly more than one token. */
const REPEATED_SIGN = /(\W)\1{9,39}/g;
/** The maximum number of characters of one token, as in long lines of blanks. */
const CHARACTERS_PER_TOKEN_MAX = 128;
/** The number of evenly spaced pieces in the sample of a long answer, and their length. */
const SAMPLE_COUNT = 16;
const SAMPLE_LENGTH = 256;
/** The length of the pieces of a list. Lists are few and need a better estimate. */
const LIST_SAMPLE_LENGTH = 4_096;

/**
 * Returns the estimated number of tokens (o200k) of a text. The factors were fitted to tool
 * definitions, to texts in thirty languages and to code (`bench/tokens.ts` shows the accuracy).
 */
export function tokensOf(text: string): number {
  let [tokens, words, accented, letters] = [0, 0, 0, 0];
  const pieces = NOT_PLAIN.test(text) ? PIECES : PLAIN;
  for (const [, before, word, other, signs] of text.replace(REPEATED_SIGN, "$1").matchAll(pieces)) {
    const { length } = word ?? other ?? signs ?? "";
    const isLatin = (other?.charCodeAt(0) ?? 0) < 0x250;
    if (isLatin && !signs) letters += Math.max(0, length - 3);
    if (word) {
      words++;
      tokens += 1 + extraTokens(word, before);
      if (before?.trim()) tokens += 0.4;
    } else if (other && isLatin) {
      words++;
      accented++;
      tokens += 0.4;
    } else if (other) {
      // Chinese, Japanese and Korean have the most letters in the tables, and the fewest letters in
      // a token.
      tokens += other.charCodeAt(0) > 0x2e7f ? 0.76 * length : 0.55 + 0.24 * length;
    } else tokens += signs && signs > "\xff" ? length : 1 + Math.max(0, length - 3) / 3;
  }
  // In a language with accents, words without accents cost more tokens, too.
  tokens += 0.82 * letters * accented / (words || 1);
  return Math.round(Math.max(tokens, text.length / CHARACTERS_PER_TOKEN_MAX));
}

/**
 * Returns the tokens of a word beyond the first. Few English words have more than one token; most
 * abbreviations have more.
 */
function extraTokens(word: string, before: string | undefined): number {
  const { length } = word;
  if (length > 2 && !/[a-z]/.test(word.slice(0, 3))) return 0.4 + length / 20;
  return before === " " ? Math.max(0, length - 8) / 5 : Math.max(0, length - 5) / 20;
}

/**
 * Returns how many characters of an answer a model reads, without images and audio. Returns
 * undefined for a question to the user, which no model reads.
 */
export function textLengthOf({ tools, content }: JsonObject): number | undefined {
  if (Array.isArray(tools)) return textOfItems(tools).length;
  if (content === undefined) return undefined;
  let length = 0;
  for (const block of listOf(content)) length += textIn(block).length;
  return length;
}

/** Returns the text of an answer; only evenly spaced pieces if it is long. */
export function textSampleOf({ tools, content }: JsonObject): string {
  if (Array.isArray(tools)) return sampleOf([textOfItems(tools)], LIST_SAMPLE_LENGTH);
  return sampleOf(listOf(content).map(textIn), SAMPLE_LENGTH);
}

/** Returns the text of a content block. */
function textIn(block: Json): string {
  const { text, resource } = objectOf(block);
  return textOf(text ?? objectOf(resource).text);
}

/** Joins texts. If they are long, joins only evenly spaced pieces of `size` characters. */
function sampleOf(texts: readonly string[], size: number): string {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  if (length <= SAMPLE_COUNT * size) return texts.join("\n");
  const pieces: string[] = [];
  // Takes the middle of each part, because the beginning of a text is often unlike the rest.
  const next = () => Math.floor((pieces.length + 0.5) * length / SAMPLE_COUNT);
  let before = 0;
  for (const text of texts) {
    for (let at = next() - before; at < text.length; at = next() - before) {
      pieces.push(text.slice(at, at + size));
    }
    before += text.length;
  }
  return pieces.join("\n");
}
