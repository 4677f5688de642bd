/**
 * Waits for a condition or a promise, and never for ever.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";

/** How long the kit waits for an answer before it calls a test failed; a loaded machine is slow. */
export const DEADLINE_MS = 60_000;

/** How long PML may take to end: lists that servers have begun get 10 seconds. */
export const END_MS = 25_000;

const LOOK_MS = 10;
const LONGEST_LOOK_MS = 50;

/** Looks again and again until a condition holds; tells whether it did in time. */
export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  withinMs: number = DEADLINE_MS,
): Promise<boolean> {
  const start = performance.now();
  while (!await holds()) {
    const waited = performance.now() - start;
    if (waited > withinMs) return false;
    // Whoever waits long looks less often: a look may read all of `/proc`, or a journal.
    const pause = Math.min(LOOK_MS + waited / 20, LONGEST_LOOK_MS);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  return true;
}

/** Waits until a condition holds, or fails. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  withinMs: number = DEADLINE_MS,
): Promise<void> {
  if (!await waitUntil(holds, withinMs)) {
    assert.fail(`It is not so in ${withinMs} ms: ${holds}`);
  }
}

/**
 * Runs something again until it took less time of this thread than that, ten times at most, or
 * fails. The time that other programs take of the processor does not count.
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

/** Gives what a promise gives, or fails with a text made when the time is over. */
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
