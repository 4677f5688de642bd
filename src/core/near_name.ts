/**
 * Finds the known name that is nearest to an unknown one.
 *
 * @module
 */

const LONGEST = 64;
/** The minimum length of a name that may be the beginning of another one. */
const SHORTEST_START = 3;

/**
 * Returns the name that is most like another one, or that begins with it; undefined if there is none.
 */
export function nearName(name: string, names: readonly string[]): string | undefined {
  const [best] = names.filter((one) => one.length <= LONGEST)
    .map((one) => ({ one, far: distance(name.slice(0, LONGEST).toLowerCase(), one.toLowerCase()) }))
    .filter(({ one, far }) => far <= Math.max(1, Math.floor(one.length * 0.4)))
    .sort((a, b) => a.far - b.far);
  if (best !== undefined || name.length < SHORTEST_START) return best?.one;
  return names.find((one) => one.length <= LONGEST && one.startsWith(name));
}

/** Returns how many letters must be changed, added or removed. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [line, letter] of [...from].entries()) {
    const next = [line + 1];
    for (let at = 1; at <= to.length; at++) {
      const changed = (row[at - 1] ?? 0) + (to[at - 1] === letter ? 0 : 1);
      next.push(Math.min(changed, (row[at] ?? 0) + 1, (next[at - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
