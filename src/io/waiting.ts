/**
 * Waits with a time limit or a signal.
 *
 * @module
 */

/** Calls `act` when a signal aborts, or now if it already has. Disposing cancels this. */
export function onAbort(signal: AbortSignal, act: () => void): Disposable {
  if (signal.aborted) act();
  signal.addEventListener("abort", act, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", act) };
}

/** Waits for work, or until a signal aborts, even if the work goes on. */
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

/** Lets other work have its turn. */
export function turn(): Promise<void> {
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
