/**
 * Waits for a condition or a promise, with a deadline.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";

/**
 * How long the kit waits for an answer before a test fails, in milliseconds; a loaded machine is
 * slow.
 */
export const DEADLINE_MS = 60_000;

/** How long PML may take to end, in milliseconds: lists that servers have begun get 10 seconds. */
export const END_MS = 25_000;

const LOOK_MS = 10;
const LONGEST_LOOK_MS = 50;

/** Checks a condition repeatedly; returns whether it became true in time. */
export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  withinMs: number = DEADLINE_MS,
): Promise<boolean> {
  const start = performance.now();
  while (!await holds()) {
    const waited = performance.now() - start;
    if (waited > withinMs) return false;
    // A longer wait checks less often: a check may read all of `/proc`, or a journal.
    const pause = Math.min(LOOK_MS + waited / 20, LONGEST_LOOK_MS);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return true;
}

/** Waits until a condition is true. Throws after the deadline. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  withinMs: number = DEADLINE_MS,
): Promise<void> {
  if (!await waitUntil(holds, withinMs)) {
    assert.fail(`not true after ${withinMs} ms: ${holds}`);
  }
}

/**
 * Repeats a function until it took less time of this thread than that, ten times at most. Throws
 * otherwise. The processor time of other programs does not count.
 */
export async function assertQuick(ms: number, run: () => unknown): Promise<void> {
  const times: number[] = [];
  while (times.length < 10 && !times.some((time) => time < ms)) {
    const since = process.threadCpuUsage();
    await run();
    const { user, system } = process.threadCpuUsage(since);
    times.push((user + system) / 1_000);
  }
  assert.ok(Math.min(...times) < ms, `not under ${ms} ms: ${times}`);
}

/**
 * Returns the result of a promise, or throws an error with a text that is made when the time is
 * over.
 */
export async function within<T>(
  promise: Promise<T>,
  { ms = DEADLINE_MS, what }: { readonly ms?: number; readonly what: () => string },
): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`Nothing came in ${ms} ms: ${what()}`)), ms);
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}
