/**
 * Runs several independent calls together: all are judged before the first starts, and the person
 * is asked at most once.
 *
 * @module
 */

import type { Answer, Call, CallTool, ToolResult } from "../core/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { defined } from "../core/json.ts";

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

/** What one call may still be asked about by itself, because something changed meanwhile. */
const MOST_QUESTIONS = 4;

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
  options: Pick<BatchOptions, "callTool"> & { readonly answers: ReadonlyMap<string, Answer> },
): Promise<BatchItem> {
  try {
    if (call instanceof PmlError) throw call;
    return { id, tool, result: await resultOf(call, options), error: undefined };
  } catch (error) {
    return { id, tool, result: undefined, error: asPmlError(error) };
  }
}

async function resultOf(
  { answer: _, ...call }: Call,
  { callTool, answers }: Parameters<typeof run>[1],
): Promise<ToolResult> {
  let answer = answers.get(call.callId);
  for (let count = 0; count < MOST_QUESTIONS; count++) {
    const callId = count === 0 ? call.callId : crypto.randomUUID();
    const outcome = await callTool({ ...call, callId, ...defined({ answer }) });
    if (outcome.kind === "result") return outcome.result;
    if (call.onQuestion === undefined) break;
    answer = await call.onQuestion(outcome.question, call.signal);
  }
  throw askedAlone(call);
}

/** Returns the error of a call that asks again and again, or has nobody to ask. */
function askedAlone(call: Pick<Call, "id">): PmlError {
  return new PmlError(
    "APPROVAL_REQUIRED",
    `Cannot run "${call.id}" in a batch: it needs an approval`,
    {
      hint: "Call it alone, so that the question can be answered",
    },
  );
}
