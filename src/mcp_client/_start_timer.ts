/**
 * How long a server may take to start.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

/** The longest start that `limits.start_ms` allows. */
const LONGEST_MS = 600_000;

/** How a start is bounded. */
export interface StartTimerOptions {
  readonly ms: number;
  /** The PML home, where the bound can be raised. */
  readonly home: string;
  /** Gives up the start. */
  readonly closing: AbortSignal;
}

/** Bounds how long a server may take until it answers for the first time. */
export class StartTimer implements Disposable {
  /** Aborts with the error that says so, or with the reason of what closes all. */
  readonly signal: AbortSignal;
  readonly #abort = new AbortController();
  readonly #timer: ReturnType<typeof setTimeout>;

  /** Starts to count. */
  constructor(name: string, { ms, home, closing }: StartTimerOptions) {
    this.signal = AbortSignal.any([this.#abort.signal, closing]);
    const file = quoted(join(home, "config.yaml"), 400);
    const late = new PmlError("TIMED_OUT", `Cannot start ${quoted(name)}: no answer in ${ms} ms`, {
      hint: `Try it by hand. If it only needs longer, set start_ms under limits in ${file}, such ` +
        `as "start_ms: ${Math.min(ms * 4, LONGEST_MS)}"`,
    });
    this.#timer = setTimeout(() => this.#abort.abort(late), ms);
  }

  /** Stops counting. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
