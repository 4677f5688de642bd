/**
 * Runs several independent calls together. All calls are checked before the first starts, and the
 * user is asked at most once.
 *
 * @module
 */

import type { Call, CallTool, ToolResult } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { tooLargeError } from "../core/json_bounds.ts";
import type { Preflight } from "./_judging.ts";
import { answeredResult } from "./run.ts";

/** One call of a batch. */
export interface BatchCall {
  /** The optional id that the caller assigned. */
  readonly id: string | undefined;
  /** The tool name that the caller sent. */
  readonly tool: string;
  /** The call, or the error of an invalid call. */
  readonly call: Call | PmlError;
}

/** The result of one call of a batch, or its error. */
export interface BatchItem {
  readonly id: string | undefined;
  readonly tool: string;
  readonly result?: ToolResult;
  readonly error?: PmlError;
}

/** The collaborators of `runBatch`. */
export interface BatchParts {
  readonly callTool: CallTool;
  readonly preflight: Pick<Preflight, "askForAll">;
  /** The maximum length of all results together, in characters. */
  readonly most: number;
}

/**
 * Runs the calls of a batch concurrently, each with all checks. The user is asked before the first
 * call runs.
 */
export async function runBatch(
  calls: readonly BatchCall[],
  { callTool, preflight, most }: BatchParts,
): Promise<readonly BatchItem[]> {
  const valid = calls.map(({ call }) => call).filter((call): call is Call =>
    !(call instanceof PmlError)
  );
  const answers = await preflight.askForAll(valid);
  let remaining = most;
  return await Promise.all(calls.map(async ({ id, tool, call }) => {
    try {
      if (call instanceof PmlError) throw call;
      const result = await answeredResult(call, { callTool }, answers.get(call.callId));
      const { length } = JSON.stringify(result);
      // A result over the limit is dropped at once, so that the results do not fill the memory.
      if (length > remaining) {
        throw tooLargeError("the result", {
          why: `those of a batch have at most ${most} characters`,
        });
      }
      // guard: batch-size
      remaining -= length;
      return { id, tool, result };
    } catch (error) {
      return { id, tool, error: asPmlError(error) };
    }
  }));
}
