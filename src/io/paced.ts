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
