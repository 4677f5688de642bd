/**
 * Tells names apart that a person could take for each other.
 *
 * @module
 */

/** What looks alike in many typefaces, each as one letter. */
const ALIKE: readonly (readonly [RegExp, string])[] = [
  [/rn/g, "m"],
  [/vv/g, "w"],
  [/cl/g, "d"],
  [/[1i]/g, "l"],
  [/0/g, "o"],
  [/5/g, "s"],
  [/[._-]/g, ""],
];

/** Gives the first of the known names that another one could be taken for; it is none of them. */
export function confusableWith(name: string, known: Iterable<string>): string | undefined {
  const look = lookOf(name);
  for (const other of known) {
    if (other !== name && (lookOf(other) === look || isOneSlip(name, other))) return other;
  }
  return undefined;
}

function lookOf(name: string): string {
  return ALIKE.reduce((text, [pattern, letter]) => text.replace(pattern, letter), name);
}

/** One letter more, less, other or swapped; short names differ by one letter all the time. */
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
