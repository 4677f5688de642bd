/**
 * Finds names that a user could confuse with each other.
 *
 * @module
 */

/** Characters that look alike in many typefaces, and the letter that represents them. */
const ALIKE: readonly (readonly [RegExp, string])[] = [
  [/rn/g, "m"],
  [/vv/g, "w"],
  [/cl/g, "d"],
  [/[1i]/g, "l"],
  [/0/g, "o"],
  [/5/g, "s"],
  [/[._-]/g, ""],
];

/**
 * Returns the first of the names that looks like `name`, but is not equal to it; undefined if there
 * is none.
 */
export function confusableWith(name: string, names: Iterable<string>): string | undefined {
  const skeleton = skeletonOf(name);
  for (const other of names) {
    if (other !== name && (skeletonOf(other) === skeleton || isOneSlip(name, other))) return other;
  }
  return undefined;
}

/** Returns the same text for all names that look alike in many typefaces. */
export function skeletonOf(name: string): string {
  return ALIKE.reduce((text, [pattern, letter]) => text.replace(pattern, letter), name);
}

/**
 * Returns whether two names differ by one letter that is added, missing, changed or swapped. Short
 * names are never similar, because they often differ by one letter.
 */
function isOneSlip(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  if (short.length < 5 || long.length - short.length > 1) return false;
  let from = 0;
  while (from < short.length && short[from] === long[from]) from++;
  let [end, last] = [short.length, long.length];
  while (end > from && short[end - 1] === long[last - 1]) [end, last] = [end - 1, last - 1];
  const [less, more] = [short.slice(from, end), long.slice(from, last)];
  const isSwap = less.length === 2 && less[0] === more[1] && less[1] === more[0];
  return isSwap || less.length <= 1 && more.length <= 1;
}
