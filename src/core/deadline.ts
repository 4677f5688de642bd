/**
 * The innermost gate: a call ends by its deadline, whatever runs behind it.
 *
 * @module
 */

import type { Call, CallTool, Gate, Outcome } from "./call.ts";
import { PmlError } from "./errors.ts";

/** How long a call may take, in milliseconds. */
export interface Deadline {
  /** Without progress. Each progress message starts it again. */
  readonly callMs: number;
  /** At the most, progress or not. */
  readonly capMs: number;
}

/** Aborts a call's signal with TIMED_OUT when its deadline passes; progress extends it. */
export function deadlineGate(limits: () => Deadline): Gate {
  return (next) => async (call) => {
    const { callMs, capMs } = limits();
    const abort = new AbortController();
    const cancel = () => abort.abort(call.signal.reason);
    if (call.signal.aborted) cancel();
    call.signal.addEventListener("abort", cancel, { once: true });
    const expire = (ms: number) => abort.abort(timedOut(call, ms));
    let timer = setTimeout(expire, callMs, callMs);
    const cap = setTimeout(expire, capMs, capMs);
    const extend: Call["onProgress"] = (progress) => {
      clearTimeout(timer);
      timer = setTimeout(expire, callMs, callMs);
      call.onProgress?.(progress);
    };
    try {
      return await settled(next, { ...call, signal: abort.signal, onProgress: extend });
    } finally {
      clearTimeout(timer);
      clearTimeout(cap);
      call.signal.removeEventListener("abort", cancel);
    }
  };
}

/** Waits for the call or the abort, so that a callee which ignores its signal cannot hold us. */
function settled(next: CallTool, call: Call): Promise<Outcome> {
  const { promise, reject } = Promise.withResolvers<never>();
  const refuse = () => reject(reasonOf(call));
  if (call.signal.aborted) refuse();
  call.signal.addEventListener("abort", refuse, { once: true });
  const aborted = promise.finally(() => call.signal.removeEventListener("abort", refuse));
  // Nobody listens to the loser of the race.
  aborted.catch(() => {});
  if (call.signal.aborted) return aborted;
  return Promise.race([next(call), aborted]);
}

function reasonOf(call: Call): PmlError {
  const { reason } = call.signal;
  if (reason instanceof PmlError) return reason;
  return new PmlError("CANCELLED", `Cannot finish "${call.id}": the client cancelled it`);
}

function timedOut(call: Call, ms: number): PmlError {
  return new PmlError("TIMED_OUT", `Cannot finish "${call.id}": it took longer than ${ms} ms`, {
    hint: "Ask for less at once, or raise limits.call_ms in config.yaml of the PML home",
  });
}
