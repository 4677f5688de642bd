/**
 * Reads what a child says in its frames, and words for why one cannot go on.
 *
 * @module
 */

import type { Progress } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { defined } from "../core/json.ts";
import { plainJson } from "./_plain.ts";
import type { Frame } from "./_wire.ts";

/** Makes the error of a machine or a child that cannot run modules. */
export function unusable(why: string, detail?: Record<string, unknown>): PmlError {
  return new PmlError("SANDBOX_DENIED", `Cannot run modules: ${why}`, {
    hint: "Check that this Deno is 2.9.6 or newer and unchanged",
    detail,
  });
}

/** Tells why a signal aborted. */
export function reasonOf(signal: AbortSignal): PmlError {
  if (signal.reason instanceof PmlError) return signal.reason;
  return new PmlError("CANCELLED", "Cannot finish the call: it was cancelled", {
    cause: signal.reason,
  });
}

/** Reads what a module told of its progress. */
export function progressOf(said: Record<string, unknown>): Progress {
  const { progress, total, message } = said;
  return {
    progress: Number(progress),
    ...defined({
      total: typeof total === "number" ? total : undefined,
      message: typeof message === "string" ? message.slice(0, 4_096) : undefined,
    }),
  };
}

/** Reads the JSON of a frame; undefined where it is none. */
export function valueOf(frame: Frame): unknown {
  try {
    return plainJson(frame.json, "a message");
  } catch {
    return undefined; // a message that a module forged badly is no message
  }
}

/** Reads a frame whose JSON is a text. */
export function textOf(frame: Frame): string {
  return String(valueOf(frame) ?? "it broke").slice(0, 2_000);
}
