/**
 * Works on many things without holding the thread for long.
 *
 * @module
 */

import { setImmediate } from "node:timers";

/**
 * Begins work on each item in a turn of its own, and returns what the work returned. What one item
 * needs at once is over before the next begins, and others have their turn in between.
 */
export async function paced<T, R>(
  items: readonly T[],
  work: (item: T, at: number) => R,
): Promise<readonly R[]> {
  const begun: R[] = [];
  for (const [at, item] of items.entries()) {
    begun.push(work(item, at));
    // guard: plan-turns
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
  return begun;
}
