/**
 * Runs several independent calls together: all are judged before the first starts, and the person
 * is asked at most once.
 *
 * @module
 */

import type { Answer, Call, CallTool, ToolResult } from "../core/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { answeredResult } from "./run.ts";

/** One call of a batch. */
export interface BatchCall {
  /** The caller's own id for it, if it gave one. */
  readonly id: string | undefined;
  /** The tool, as the caller named it. */
  readonly tool: string;
  /** The call, or the error if it is not valid. */
  readonly call: Call | PmlError;
}

/** The result of one call of a batch. */
export interface BatchItem {
  readonly id: string | undefined;
  readonly tool: string;
  readonly result: ToolResult | undefined;
  readonly error: PmlError | undefined;
}

/** The options of `runBatch`. */
export interface BatchOptions {
  readonly callTool: CallTool;
  /** Asks one question about all calls that need one. Returns an answer for each by its `callId`. */
  readonly ask: (calls: readonly Call[]) => Promise<ReadonlyMap<string, Answer>>;
}

/**
 * Runs the calls of a batch at the same time, each through all gates. The person is asked first,
 * while nothing runs.
 */
export async function runBatch(
  calls: readonly BatchCall[],
  { callTool, ask }: BatchOptions,
): Promise<readonly BatchItem[]> {
  const valid = calls.map(({ call }) => call).filter((call): call is Call =>
    !(call instanceof PmlError)
  );
  const answers = await ask(valid);
  return await Promise.all(calls.map((one) => run(one, { callTool, answers })));
}

async function run(
  { id, tool, call }: BatchCall,
  { callTool, answers }: Pick<BatchOptions, "callTool"> & {
    readonly answers: ReadonlyMap<string, Answer>;
  },
): Promise<BatchItem> {
  try {
    if (call instanceof PmlError) throw call;
    const { answer: _, ...own } = call;
    const result = await answeredResult(own, { callTool, answer: answers.get(own.callId) });
    return { id, tool, result, error: undefined };
  } catch (error) {
    return { id, tool, result: undefined, error: asPmlError(error) };
  }
}
