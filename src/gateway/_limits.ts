/**
 * What the keywords of JSON Schema say of how much there may be of something.
 *
 * @module
 */

import type { Make } from "./_keywords.ts";
import { FITS, type Run } from "./_run.ts";

/** Gives how much there is of what is limited; undefined where the value is of another kind. */
type Measure = (value: unknown, run: Run, limit: number) => number | undefined;

/** Makes the keywords `minX` and `maxX`; the words say that there is too little, or too much. */
export function limits(
  what: string,
  words: readonly [little: string, much: string],
  measure: Measure,
): Readonly<Record<string, Make>> {
  const make = (index: 0 | 1): Make => (limit) => {
    if (typeof limit !== "number") return undefined;
    return (value, { at, run }) => {
      const found = measure(value, run, limit) ?? limit;
      if (index === 0 ? found >= limit : found <= limit) return FITS;
      return run.fail(at, () => `${words[index]} (${found} ${"<>"[index]} ${limit})`);
    };
  };
  return { [`min${what}`]: make(0), [`max${what}`]: make(1) };
}
