/**
 * Reads the frames of a child, and creates the errors of a child that cannot continue.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { plainJson } from "./_plain_json.ts";
import type { Frame } from "./_wire.ts";

/** Creates the error for a machine or a child that cannot run modules. */
export function sandboxUnusable(why: string, detail?: Record<string, unknown>): PmlError {
  return new PmlError("SANDBOX_DENIED", `Cannot run modules: ${why}`, {
    hint: "Check that this Deno is 2.9.6 or newer and unchanged",
    detail,
  });
}

/** Returns the reason why a signal aborted, as a PmlError. */
export function reasonOf(signal: AbortSignal): PmlError {
  if (signal.reason instanceof PmlError) return signal.reason;
  return new PmlError("CANCELLED", "Cannot finish the call: it was cancelled", {
    cause: signal.reason,
  });
}

/** Reads the JSON of a frame; returns undefined if it is not valid. */
export function valueOf(frame: Frame): unknown {
  try {
    return plainJson(frame.json, "a message");
  } catch {
    return undefined; // an invalid frame, forged by the module; ignored
  }
}

/** Reads a frame whose JSON is a string. */
export function frameText(frame: Frame): string {
  return String(valueOf(frame) ?? "it broke").slice(0, 2_000);
}
