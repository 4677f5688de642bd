/**
 * Finds the known name that is most similar to an unknown name.
 *
 * @module
 */

const NAME_MAX = 64;
/** The minimum length of a name that is compared with the beginnings of other names. */
const PREFIX_MIN = 3;

/**
 * Returns the name that is most similar to `name`, or else the first that begins with `name`;
 * undefined if there is none.
 */
export function nearName(name: string, names: readonly string[]): string | undefined {
  const [best] = names.filter((candidate) => candidate.length <= NAME_MAX)
    .map((candidate) => ({
      candidate,
      distance: distanceOf(name.slice(0, NAME_MAX).toLowerCase(), candidate.toLowerCase()),
    }))
    .filter(({ candidate, distance }) =>
      distance <= Math.max(1, Math.floor(candidate.length * 0.4))
    )
    .sort((a, b) => a.distance - b.distance);
  if (best !== undefined || name.length < PREFIX_MIN) return best?.candidate;
  return names.find((candidate) => candidate.length <= NAME_MAX && candidate.startsWith(name));
}

/** Returns how many letters must be changed, added or removed (Levenshtein distance). */
function distanceOf(from: string, to: string): number {
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
