/**
 * Completion of arguments never asks the user: without permission it returns no values.
 *
 * @module
 */

import type { Outcome, ToolResult } from "../../protocol/call.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { CallContext } from "../context.ts";
import type { CheckResult } from "./check.ts";

const COMPLETION = "completion/complete";
const NO_VALUES = { completion: { values: [], hasMore: false } };

/** Ends a completion without values if it needs a question. */
export function completionNeedsNoQuestion(call: CallContext): Maybe<CheckResult> {
  if (call.method !== COMPLETION) return undefined;
  return call.verdict?.kind === "allow" ? withoutApproval(call) : noValues();
}

/** Returns the outcome of a call that ends with a question: no values for a completion. */
export function withoutCompletionQuestion(
  { method }: Pick<CallContext, "method">,
  outcome: Outcome,
): Outcome {
  return method === COMPLETION && outcome.kind === "ask" ? noValues() : outcome;
}

async function withoutApproval(call: CallContext): Promise<CheckResult> {
  return await call.server.unapproved(call) === undefined ? undefined : noValues();
}

function noValues(): Outcome {
  return { kind: "result", result: NO_VALUES as unknown as ToolResult };
}
