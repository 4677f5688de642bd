/**
 * Limits how long a server may take to start.
 *
 * @module
 */

import type { UpstreamsHost } from "./upstreams_host.ts";
import { join } from "node:path";
import { durationText } from "../../core/amounts.ts";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { LateStarts, type StartKey } from "../../io/late_starts.ts";
import { callAfter } from "../../io/waiting.ts";

/** The highest value of `limits.start_ms` in milliseconds. */
const LONGEST_MS = 600_000;

/** The time limit of a start. Disposing stops the timer. */
export interface StartTimer extends Disposable {
  /** Aborts with `TIMED_OUT` when the time is over, or with the reason of `closing`. */
  readonly signal: AbortSignal;
}

/**
 * Limits the time until a server answers for the first time to `limits.start_ms`. If the server
 * takes longer, records a late start. `closing` aborts when the start is cancelled.
 */
export function startTimer(
  { name, definition }: StartKey,
  host: Pick<UpstreamsHost, "home" | "workspace" | "limits">,
  closing: AbortSignal,
): StartTimer {
  const ms = host.limits.startMs;
  const file = quoted(join(host.home, "config.yaml"), 400);
  const why = `no answer within ${durationText(ms)}`;
  const late = new PmlError("TIMED_OUT", `Cannot start ${quoted(name)}: ${why}`, {
    hint: `Run its command in a terminal, or check its address. If it only needs more time, ` +
      `set start_ms under limits in ${file}, such as "start_ms: ${Math.min(ms * 4, LONGEST_MS)}"`,
  });
  const abort = new AbortController();
  const timer = callAfter(ms, () => {
    new LateStarts(host).record({ name, definition }, late);
    abort.abort(late);
  });
  return { ...timer, signal: AbortSignal.any([abort.signal, closing]) };
}
