/**
 * Estimates how many tokens a text costs a model, without the tables that exact counting needs.
 *
 * @module
 */

import { type Json, type JsonObject, listOf, objectOf, textOf } from "./json.ts";
import { textOfItems } from "./json_text.ts";

/**
 * The pieces into which o200k cuts a text, approximately: a sign or blank with the word after it (a
 * plain word, or one of any letters), up to three digits, signs in a row, blanks. All other
 * characters are skipped. Each alternative ends where the next cannot begin, so a text is read
 * once.
 */
const PIECES =
  /([^\r\n\p{L}\p{N}]?)(?:([A-Z]*[a-z]+|[A-Z]+)(?![a-z\xc0-\u024f])|([\p{L}\p{M}]+))|\p{N}{1,3}| ?([^\s\p{L}\p{N}]+)[\r\n/]*|\s+(?=\s\S)|\s+/gu;
/**
 * The same for plain texts, which most are. The Unicode tables take megabytes of memory once they
 * are used.
 */
const PLAIN =
  /([^\r\nA-Za-z0-9]?)(?:([A-Z]*[a-z]+|[A-Z]+)(?![a-z])|([A-Za-z]+))|[0-9]{1,3}| ?([^\sA-Za-z0-9]+)[\r\n/]*|\s+(?=\s\S)|\s+/g;
const NOT_PLAIN = /[^\0-\x7f]/;
/** A line of one repeated sign, or of blanks, costs hardly more than one token. */
const RULER = /(\W)\1{9,39}/g;
/** The maximum number of characters that one token can hold, as in long lines of blanks. */
const MOST_CHARACTERS = 128;
/** A sample of a longer answer is this many evenly spaced pieces. */
const SAMPLES = 16;
const SAMPLE = 256;
/** The size of pieces of lists, which are few and need a better estimate. */
const LIST_SAMPLE = 4_096;

/**
 * Returns the estimated number of tokens (o200k) of a text. The factors were fitted to tool
 * definitions, to texts in thirty languages and to code (`bench/tokens.ts` shows the accuracy).
 */
export function tokensOf(text: string): number {
  let [tokens, words, accented, letters] = [0, 0, 0, 0];
  const pieces = NOT_PLAIN.test(text) ? PIECES : PLAIN;
  for (const [, before, word, other, signs] of text.replace(RULER, "$1").matchAll(pieces)) {
    const { length } = word ?? other ?? signs ?? "";
    const isLatin = (other?.charCodeAt(0) ?? 0) < 0x250;
    if (isLatin && !signs) letters += Math.max(0, length - 3);
    if (word) {
      words++;
      tokens += 1 + excess(word, before);
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
  return Math.round(Math.max(tokens, text.length / MOST_CHARACTERS));
}

/**
 * Returns the tokens of a word beyond the first. Few English words have more than one; most
 * abbreviations do.
 */
function excess(word: string, before: string | undefined): number {
  const { length } = word;
  if (length > 2 && !/[a-z]/.test(word.slice(0, 3))) return 0.4 + length / 20;
  return before === " " ? Math.max(0, length - 8) / 5 : Math.max(0, length - 5) / 20;
}

/**
 * Returns the number of characters that a model reads of an answer to a client; undefined for a
 * question to the user, which no model reads. Images and audio count nothing.
 */
export function textLengthOf({ tools, content }: JsonObject): number | undefined {
  if (Array.isArray(tools)) return textOfItems(tools).length;
  if (content === undefined) return undefined;
  let length = 0;
  for (const block of listOf(content)) length += textIn(block).length;
  return length;
}

/** Returns the text of an answer; evenly spaced pieces of it if it is long. */
export function textSampleOf({ tools, content }: JsonObject): string {
  if (Array.isArray(tools)) return sampleOf([textOfItems(tools)], LIST_SAMPLE);
  return sampleOf(listOf(content).map(textIn), SAMPLE);
}

/** Returns the text of a content block. */
function textIn(block: Json): string {
  const { text, resource } = objectOf(block);
  return textOf(text ?? objectOf(resource).text);
}

/** Returns texts as one, or evenly spaced pieces of `size` characters if they are long. */
function sampleOf(texts: readonly string[], size: number): string {
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  if (length <= SAMPLES * size) return texts.join("\n");
  const pieces: string[] = [];
  // Takes the middle of each part, because the beginning of a text is often unlike the rest.
  const next = () => Math.floor((pieces.length + 0.5) * length / SAMPLES);
  let before = 0;
  for (const text of texts) {
    for (let at = next() - before; at < text.length; at = next() - before) {
      pieces.push(text.slice(at, at + size));
    }
    before += text.length;
  }
  return pieces.join("\n");
}
