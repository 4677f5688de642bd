/**
 * Runs several independent calls together: all are judged before the first starts, and the person
 * is asked at most once.
 *
 * @module
 */

import type { Answer, Call, CallTool, Question, ToolResult, Verdict } from "../core/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";

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

/** The outcome of a batch: all items in order, or one question about all calls that need one. */
export type BatchOutcome =
  | { readonly kind: "items"; readonly items: readonly BatchItem[] }
  | { readonly kind: "ask"; readonly question: Question };

/** The options of `runBatch`. */
export interface BatchOptions {
  readonly callTool: CallTool;
  readonly judge: (id: ToolId, args: JsonObject) => Verdict;
  /** Checks a call without running it. Throws if it cannot run. */
  readonly check: (call: Call) => Promise<void>;
  /** Asks one question about all these calls. After a yes, returns an answer for each. */
  readonly ask: (calls: readonly Call[]) => Promise<Asked>;
}

/** One question for several calls, or the answer for each of them by its `callId`. */
export type Asked =
  | { readonly kind: "ask"; readonly question: Question }
  | { readonly kind: "answers"; readonly answers: ReadonlyMap<string, Answer> };

const NOTHING_ASKED: Asked = { kind: "answers", answers: new Map() };

/** Runs the calls of a batch at the same time, each through all gates. */
export async function runBatch(
  calls: readonly BatchCall[],
  options: BatchOptions,
): Promise<BatchOutcome> {
  const asks = await Promise.all(calls.map(({ call }) => wouldAsk(call, options)));
  const asked = calls.map(({ call }) => call).filter((call, at): call is Call =>
    asks[at] === true && !(call instanceof PmlError)
  );
  const said = asked.length === 0 ? NOTHING_ASKED : await options.ask(asked);
  if (said.kind === "ask") return said;
  const items = calls.map((one) => run(one, { ...options, answers: said.answers }));
  return { kind: "items", items: await Promise.all(items) };
}

/**
 * Returns whether the person must be asked. A call that will be refused anyway needs no question.
 */
async function wouldAsk(call: Call | PmlError, options: BatchOptions): Promise<boolean> {
  if (call instanceof PmlError) return false;
  if (options.judge(call.id, call.arguments).kind !== "ask") return false;
  try {
    await options.check(call);
    return true;
  } catch {
    // The call path refuses the call again, with the reason and a journal record.
    return false;
  }
}

async function run(
  { id, tool, call }: BatchCall,
  options: BatchOptions & { readonly answers: ReadonlyMap<string, Answer> },
): Promise<BatchItem> {
  try {
    if (call instanceof PmlError) throw call;
    const { answer: _, ...rest } = call;
    const own = options.answers.get(call.callId);
    const outcome = await options.callTool(own === undefined ? rest : { ...rest, answer: own });
    if (outcome.kind === "ask") throw askedAlone(call);
    return { id, tool, result: outcome.result, error: undefined };
  } catch (error) {
    return { id, tool, result: undefined, error: asPmlError(error) };
  }
}

/**
 * Returns the error of a call that asks again after the question was answered: a server's first
 * use, or changed rules.
 */
function askedAlone(call: Call): PmlError {
  return new PmlError(
    "APPROVAL_REQUIRED",
    `Cannot run "${call.id}" in a batch: it needs an approval`,
    {
      hint: "Call it alone, so that the question can be answered",
    },
  );
}
