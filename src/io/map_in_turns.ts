/**
 * Works on many items without blocking the thread for long.
 *
 * @module
 */

import { setImmediate } from "node:timers";

/**
 * Begins the work on each item in a separate turn of the event loop, and returns the results. The
 * synchronous part of one item ends before the next begins, and other work runs in between.
 */
export async function mapInTurns<T, R>(
  items: readonly T[],
  work: (item: T, index: number) => R,
): Promise<readonly R[]> {
  const results: R[] = [];
  for (const [index, item] of items.entries()) {
    results.push(work(item, index));
    // guard: plan-turns
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
  return results;
}
