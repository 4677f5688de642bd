/**
 * Finds the known name that is nearest to an unknown one.
 *
 * @module
 */

const LONGEST = 64;

/** Returns the name that is most like another one; undefined if none is like it. */
export function nearName(name: string, names: readonly string[]): string | undefined {
  const [best] = names.filter((one) => one.length <= LONGEST)
    .map((one) => ({ one, far: distance(name.slice(0, LONGEST).toLowerCase(), one.toLowerCase()) }))
    .filter(({ one, far }) => far <= Math.max(1, Math.floor(one.length * 0.4)))
    .sort((a, b) => a.far - b.far);
  return best?.one;
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
