/**
 * Runs several independent calls together. Before the first call starts, one approval request asks
 * the user about all calls that require approval.
 *
 * @module
 */

import type { Call, CallTool, ToolResult } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { tooLargeError } from "../core/json_bounds.ts";
import type { Preflight } from "./_plan_check.ts";
import type { LargeResults } from "./large_results.ts";
import { callWithApproval } from "./run.ts";

/** One call of a batch. */
export interface BatchCall {
  /** The optional id that the caller assigned. */
  readonly id: string | undefined;
  /** The tool name that the caller sent. */
  readonly tool: string;
  /** The call, or the error of an invalid call. */
  readonly call: Call | PmlError;
  /** The part of its result to return, as a JSON pointer or a JMESPath expression. */
  readonly select?: string | undefined;
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
  /** Selects parts of results; undefined if no call has `select`. */
  readonly selector?: Pick<LargeResults, "assertSelects" | "selectedResult"> | undefined;
  /** The maximum length of all results together, in characters. */
  readonly resultsMax: number;
}

/**
 * Runs the calls of a batch concurrently, each with all checks, after the user was asked. The item
 * of a failed call contains its error.
 */
export async function runBatch(
  requested: readonly BatchCall[],
  { callTool, preflight, selector, resultsMax: most }: BatchParts,
): Promise<readonly BatchItem[]> {
  const calls = await Promise.all(requested.map((batchCall) => checkSelect(batchCall, selector)));
  const valid = calls.map(({ call }) => call).filter((call): call is Call =>
    !(call instanceof PmlError)
  );
  const answers = await preflight.askForAll(valid);
  let remaining = most;
  return await Promise.all(calls.map(async ({ id, tool, call, select }) => {
    try {
      if (call instanceof PmlError) throw call;
      const whole = await callWithApproval(call, { callTool }, answers.get(call.callId));
      const isSelected = select !== undefined && selector !== undefined && whole.isError !== true;
      const result = isSelected ? await selector.selectedResult(whole, { select, call }) : whole;
      const { length } = JSON.stringify(result);
      // A result over the limit is dropped at once, so that the results do not fill the memory.
      if (length > remaining) {
        throw tooLargeError("the result", {
          why: `the results of a batch have together at most ${most} characters`,
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

/** Checks `select`. If it is invalid, an error replaces the call, so that the tool does not run. */
async function checkSelect(
  batchCall: BatchCall,
  selector: BatchParts["selector"],
): Promise<BatchCall> {
  const { call, select } = batchCall;
  if (select === undefined || call instanceof PmlError) return batchCall;
  try {
    await selector?.assertSelects(select, call.cancellation.signal);
    return batchCall;
  } catch (error) {
    return { ...batchCall, call: asPmlError(error) };
  }
}
