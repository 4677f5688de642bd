/**
 * The innermost gate: a call ends by its deadline, whatever runs behind it.
 *
 * @module
 */

import { type Call, type Gate, heldAsking, type Meanwhile } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { onAbort } from "../io/waiting.ts";

/** How long a call may take, in milliseconds. */
export interface Deadline {
  /** Without progress. Each progress message starts it again. */
  readonly callMs: number;
  /** At the most, progress or not. */
  readonly capMs: number;
  /** For how long no server was read so far, because the client has to read first. */
  readonly heldMs?: number;
}

/** Aborts a call's signal with TIMED_OUT when its deadline passes; progress extends it. */
export function deadlineGate<C extends Call, O>(limits: () => Deadline): Gate<C, O> {
  return (next) => async (call) => {
    const { callMs, capMs } = limits();
    const { signal } = call;
    if (signal.aborted) throw reasonOf(call);
    const abort = new AbortController();
    // A callee that ignores its signal cannot hold us.
    const over = Promise.withResolvers<O>();
    const end = (error: PmlError) => {
      over.reject(error);
      abort.abort(error);
    };
    using _ = onAbort(signal, () => end(reasonOf(call)));
    let started = performance.now();
    let heard = started;
    let [asking, since] = [0, 0];
    let known = limits().heldMs ?? 0;
    // One timer, that looks at both limits when it goes off: progress may come often.
    const look = () => {
      const { heldMs = 0 } = limits();
      // What the client had to read first is no time of the call, and its answer may wait unread.
      if (heldMs > known) [started, heard] = [started + heldMs - known, performance.now()];
      known = heldMs;
      const ms = heard + callMs < started + capMs ? callMs : capMs;
      const left = (ms === callMs ? heard : started) + ms - performance.now();
      if (asking > 0) timer = setTimeout(look, callMs);
      else if (left > 0) timer = setTimeout(look, left);
      else end(timedOut(call, ms));
    };
    let timer = setTimeout(look, Math.min(callMs, capMs));
    const onProgress: Call["onProgress"] = (progress) => {
      heard = performance.now();
      call.onProgress?.(progress);
    };
    // A person takes the time that they take.
    const held = async <T>(work: () => Promise<T>) => {
      if (asking++ === 0) since = performance.now();
      try {
        return await work();
      } finally {
        const waited = performance.now() - since;
        if (--asking === 0) [started, heard] = [started + waited, heard + waited];
      }
    };
    const meanwhile: Meanwhile = { onProgress, ...heldAsking(call, held) };
    try {
      next({ ...call, signal: abort.signal, ...meanwhile }).then(over.resolve, over.reject);
      return await over.promise;
    } finally {
      // What is still asked is asked in vain.
      if (asking > 0) abort.abort(new PmlError("CANCELLED", "Cannot answer: the call is over"));
      clearTimeout(timer);
    }
  };
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
