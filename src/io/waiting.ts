/**
 * Waits that have an end.
 *
 * @module
 */

/** Acts when a signal aborts, at once where it has already; what is disposed acts no more. */
export function onAbort(signal: AbortSignal, act: () => void): Disposable {
  if (signal.aborted) act();
  signal.addEventListener("abort", act, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", act) };
}

/** Waits for work, or until a signal aborts, whether the work heeds that or not. */
export async function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  reasonOf: (signal: AbortSignal) => unknown = ({ reason }) => reason,
): Promise<T> {
  const over = Promise.withResolvers<never>();
  using _ = onAbort(signal, () => over.reject(reasonOf(signal)));
  return await Promise.race([work, over.promise]);
}

/** Acts after a while; what is disposed acts no more. */
export function after(ms: number, act: () => void): Disposable {
  const timer = setTimeout(act, ms);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** Tells whether something is over in time, however it went. */
export async function soon(over: Promise<unknown>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  using _ = after(ms, () => resolve(false));
  over.then(() => resolve(true), () => resolve(true));
  return await promise;
}

/** Lets others have their turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** Waits for a while, or until the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  using _ = onAbort(signal, resolve);
  await soon(promise, ms);
}

/** Settles when a signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}
