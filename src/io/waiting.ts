/**
 * Waits with a time limit or a signal, and repeats steps on files that another program keeps busy.
 *
 * @module
 */

/** Returns times in milliseconds. `Date` and `performance` are clocks. */
export interface Clock {
  /** Returns the current time. */
  now(): number;
}

/** A clock that is read once for all microtasks that run together. */
class TurnClock implements Clock {
  readonly #begun = Promise.resolve();
  #now: number | undefined;
  readonly #end = () => this.#now = undefined;

  now(): number {
    if (this.#now === undefined) {
      this.#now = performance.now();
      void this.#begun.then(this.#end);
    }
    return this.#now;
  }
}

const TURN_CLOCK = new TurnClock();

/**
 * Returns the time at which the present microtasks began, in `performance.now()`. Reading the clock
 * takes 85 ns, and a call needs the time 15 times.
 */
export function turnTime(): number {
  return TURN_CLOCK.now();
}

/**
 * Calls `act` when a signal aborts, or at once if it already has. Disposal removes the listener.
 */
export function onAbort(signal: AbortSignal, act: () => void): Disposable {
  if (signal.aborted) act();
  signal.addEventListener("abort", act, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", act) };
}

/** Waits for work. If a signal aborts, rejects at once, while the work may continue. */
export async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  reasonOf: (signal: AbortSignal) => unknown = ({ reason }) => reason,
): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  using _ = onAbort(signal, () => aborted.reject(reasonOf(signal)));
  return await Promise.race([work, aborted.promise]);
}

/** Calls `act` after some milliseconds. Disposing cancels this. */
export function callAfter(ms: number, act: () => void): Disposable {
  const timer = setTimeout(act, ms);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** Returns whether a promise settles in time. */
export async function settlesWithin(outcome: Promise<unknown>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  using _ = callAfter(ms, () => resolve(false));
  outcome.then(() => resolve(true), () => resolve(true));
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
  await settlesWithin(promise, ms);
}

/** Resolves when a signal aborts. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}

/** The options of `retryWhileBusy` and `retryWhileBusySync`. */
export interface RetryPolicy {
  readonly os?: typeof Deno.build.os;
  /** Waits for some milliseconds. */
  readonly wait?: (ms: number) => unknown;
}

/** The pauses between tries, in milliseconds. A virus scanner may need a second. */
const PAUSES_MS = [10, 20, 40, 80, 160, 320, 640];
/** The pauses of a synchronous step, which blocks other work: 310 ms in total. */
const BLOCKING_MS = PAUSES_MS.slice(0, 5);
/** The errors of Windows for replacing, moving or removing a file that another program has open. */
const BUSY = ["EBUSY", "EPERM", "EACCES"];
const NEVER = new Int32Array(new SharedArrayBuffer(4));

/** Returns whether a step may have failed because another program has its file open, on Windows. */
export function isBusy(error: unknown, os = Deno.build.os): boolean {
  return os === "windows" && BUSY.includes(Object(error).code);
}

/**
 * Runs a step that replaces, moves or removes files. On Windows the step is repeated for a short
 * time while another program has such a file open. On other systems, open files do not matter.
 */
export async function retryWhileBusy<T>(
  step: () => Promise<T>,
  { os = Deno.build.os, wait = (ms) => new Promise((done) => setTimeout(done, ms)) }: RetryPolicy =
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

/** Does the same as `retryWhileBusy()` synchronously. */
export function retryWhileBusySync<T>(
  step: () => T,
  { os = Deno.build.os, wait = (ms) => Atomics.wait(NEVER, 0, 0, ms) }: RetryPolicy = {},
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
