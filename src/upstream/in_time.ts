/**
 * How long a server may take to start, and the waits of who talks to one.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

import { onAbort } from "../core/waiting.ts";

export { pause, soon } from "../core/waiting.ts";

/** Settles when a signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  onAbort(signal, resolve);
  return promise;
}

/** Bounds how long a server may take until it answers for the first time. */
export class StartTimer implements Disposable {
  /** Aborts with the error that says so, or with the reason of what closes all. */
  readonly signal: AbortSignal;
  readonly #abort = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;

  /** Starts to count. */
  constructor(name: string, ms: number, closing: AbortSignal) {
    this.signal = AbortSignal.any([this.#abort.signal, closing]);
    const late = new PmlError("TIMED_OUT", `Cannot start ${quoted(name)}: no answer in ${ms} ms`, {
      hint: "Try it by hand, or raise limits.start_ms in config.yaml",
    });
    this.#timer = setTimeout(() => this.#abort.abort(late), ms);
  }

  /** Stops counting. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
