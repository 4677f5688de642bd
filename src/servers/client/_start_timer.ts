/**
 * Limits how long a server may take to start.
 *
 * @module
 */

import { join } from "node:path";
import { durationText } from "../../core/amounts.ts";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { after } from "../../io/waiting.ts";

/** The longest start that `limits.start_ms` allows. */
const LONGEST_MS = 600_000;

/** The options of `startTimer`. */
export interface StartTimerOptions {
  readonly ms: number;
  /** The PML home, where the limit can be raised. */
  readonly home: string;
  /** Aborts when the start is cancelled. */
  readonly closing: AbortSignal;
}

/** A limit that counts until it is disposed. */
export interface StartTimer extends Disposable {
  /** Aborts with `TIMED_OUT`, or with the reason of `closing`. */
  readonly signal: AbortSignal;
}

/** Limits the time until a server answers for the first time. */
export function startTimer(name: string, { ms, home, closing }: StartTimerOptions): StartTimer {
  const file = quoted(join(home, "config.yaml"), 400);
  const why = `no answer within ${durationText(ms)}`;
  const late = new PmlError("TIMED_OUT", `Cannot start ${quoted(name)}: ${why}`, {
    hint: `Run its command in a terminal, or check its address. If it only needs more time, ` +
      `set start_ms under limits in ${file}, such as "start_ms: ${Math.min(ms * 4, LONGEST_MS)}"`,
  });
  const abort = new AbortController();
  const timer = after(ms, () => abort.abort(late));
  return { ...timer, signal: AbortSignal.any([abort.signal, closing]) };
}
