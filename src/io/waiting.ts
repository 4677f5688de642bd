/**
 * Waits with a time limit or a signal, and repeats steps on files that another program keeps busy.
 *
 * @module
 */

/** Returns times in milliseconds. `Date` and `performance` are clocks. */
export interface Clock {
  /** Returns the present time. */
  now(): number;
}

/** Calls `act` when a signal aborts, or now if it already has. Disposing cancels this. */
export function onAbort(signal: AbortSignal, act: () => void): Disposable {
  if (signal.aborted) act();
  signal.addEventListener("abort", act, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", act) };
}

/** Waits for work, or until a signal aborts, even if the work continues. */
export async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  reasonOf: (signal: AbortSignal) => unknown = ({ reason }) => reason,
): Promise<T> {
  const over = Promise.withResolvers<never>();
  using _ = onAbort(signal, () => over.reject(reasonOf(signal)));
  return await Promise.race([work, over.promise]);
}

/** Calls `act` after some milliseconds. Disposing cancels this. */
export function after(ms: number, act: () => void): Disposable {
  const timer = setTimeout(act, ms);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** Returns whether a promise settles in time. */
export async function soon(over: Promise<unknown>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  using _ = after(ms, () => resolve(false));
  over.then(() => resolve(true), () => resolve(true));
  return await promise;
}

/** Lets other work run. */
export function yieldTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** Waits for some milliseconds, or until the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  using _ = onAbort(signal, resolve);
  await soon(promise, ms);
}

/** Resolves when a signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}

/** The options of `repeated` and `repeatedSync`. */
export interface Repeating {
  readonly os?: typeof Deno.build.os;
  /** Waits for some milliseconds. */
  readonly wait?: (ms: number) => unknown;
}

/** The times between tries, in milliseconds. A scanner of viruses may need a second. */
const PAUSES_MS = [10, 20, 40, 80, 160, 320, 640];
/** The times for a synchronous step, which blocks other work: 310 ms in all. */
const BLOCKING_MS = PAUSES_MS.slice(0, 5);
/** How Windows refuses to replace, move or remove a file that another program has open. */
const BUSY = ["EBUSY", "EPERM", "EACCES"];
const NEVER = new Int32Array(new SharedArrayBuffer(4));

/** Returns whether another program may have a step's file open. This matters on Windows only. */
export function isBusy(error: unknown, os = Deno.build.os): boolean {
  return os === "windows" && BUSY.includes(Object(error).code);
}

/**
 * Runs a step that replaces, moves or removes files. On Windows the step is repeated for a short
 * time while another program has such a file open. Other systems allow this.
 */
export async function repeated<T>(
  step: () => Promise<T>,
  { os = Deno.build.os, wait = (ms) => new Promise((done) => setTimeout(done, ms)) }: Repeating =
    {},
): Promise<T> {
  for (const ms of os === "windows" ? PAUSES_MS : []) {
    try {
      return await step();
    } catch (error) {
      if (!isBusy(error, os)) throw error;
    }
    await wait(ms);
  }
  return await step();
}

/** Does the same as `repeated` in one turn. */
export function repeatedSync<T>(
  step: () => T,
  { os = Deno.build.os, wait = (ms) => Atomics.wait(NEVER, 0, 0, ms) }: Repeating = {},
): T {
  for (const ms of os === "windows" ? BLOCKING_MS : []) {
    try {
      return step();
    } catch (error) {
      if (!isBusy(error, os)) throw error;
    }
    wait(ms);
  }
  return step();
}
