/**
 * Splits texts and names into the terms that search compares.
 *
 * @module
 */

const WORD = /[\p{L}\p{N}]+/gu;
const CAMEL = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/;
const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+/gu;
const ASCII = /^[a-z0-9]+$/;
const STOP = new Set(
  ("a about all an and any are as at be by can could do does each for from has have help how i if " +
    "in into is it its me more my need of on or other our please so some such that the their them " +
    "then there these this to us use using via want was we what when where which will with would " +
    "you your").split(" "),
);

/**
 * Returns the terms of a text in their order: in lower case, stemmed, without the most common words.
 */
export function termsOf(text: string): string[] {
  return runsOf(text).flatMap(termsOfRun);
}

/** Splits a text at everything that is neither a letter nor a digit. */
export function runsOf(text: string): readonly string[] {
  return text.normalize("NFKC").match(WORD) ?? [];
}

/** Returns the terms of one run of letters and digits. */
export function termsOfRun(run: string): string[] {
  const terms: string[] = [];
  const word = run.toLowerCase();
  // Most words have no capitals inside, so they need not be split.
  if (word === run) addTerm(terms, word);
  else for (const part of run.split(CAMEL)) addTerm(terms, part.toLowerCase());
  return terms;
}

function addTerm(terms: string[], word: string): void {
  if (ASCII.test(word)) {
    if (!STOP.has(word)) terms.push(stem(word));
    return;
  }
  let at = 0;
  for (const match of word.matchAll(CJK)) {
    if (match.index > at) terms.push(word.slice(at, match.index));
    addBigrams(terms, match[0]);
    at = match.index + match[0].length;
  }
  if (at < word.length) terms.push(word.slice(at));
}

/** Chinese and Japanese have no spaces between words, so each pair of characters becomes a term. */
function addBigrams(terms: string[], run: string): void {
  const characters = [...run];
  if (characters.length === 1) terms.push(run);
  for (let i = 1; i < characters.length; i++) {
    terms.push(`${characters[i - 1]}${characters[i]}`);
  }
}

/**
 * Removes the most common endings of an English word, so that `files`, `listed` and `reading` match
 * `file`, `list` and `read`.
 */
export function stem(word: string): string {
  if (word.length <= 3) return word;
  const singular = withoutPlural(word);
  const root = singular.length > 5 && singular.endsWith("ing")
    ? withoutDouble(singular.slice(0, -3))
    : singular.length > 4 && singular.endsWith("ied")
    ? `${singular.slice(0, -3)}y`
    : singular.length > 4 && singular.endsWith("ed")
    ? withoutDouble(singular.slice(0, -2))
    : singular;
  return root.length > 3 && root.endsWith("e") ? root.slice(0, -1) : root;
}

function withoutPlural(word: string): string {
  if (word.endsWith("ies") && word.length > 4) return `${word.slice(0, -3)}y`;
  if (/(?:ss|us|is)$/.test(word)) return word;
  if (/(?:ss|x|ch|sh)es$/.test(word)) return word.slice(0, -2);
  return word.endsWith("s") ? word.slice(0, -1) : word;
}

function withoutDouble(word: string): string {
  return word.length > 3 && /([bdgmnprt])\1$/.test(word) ? word.slice(0, -1) : word;
}
