/**
 * Requests that never ask the user. Without permission, the completion of an argument returns no
 * values, and a notification is refused.
 *
 * @module
 */

import type { Outcome, ToolResult } from "../../protocol/call.ts";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { CallContext } from "../context.ts";
import type { CheckResult } from "./check.ts";

const COMPLETION = "completion/complete";
const NO_VALUES = { completion: { values: [], hasMore: false } };

/** Ends the completion of an argument without values if it needs a question. */
export function completionNeedsNoQuestion(call: CallContext): Maybe<CheckResult> {
  if (call.method !== COMPLETION) return undefined;
  return call.verdict?.kind === "allow" ? completeIfApproved(call) : noValues();
}

/** Returns an outcome unchanged. Replaces a question about a completion by a result without values. */
export function withoutCompletionQuestion(
  { method }: Pick<CallContext, "method">,
  outcome: Outcome,
): Outcome {
  return method === COMPLETION && outcome.kind === "ask" ? noValues() : outcome;
}

async function completeIfApproved(call: CallContext): Promise<CheckResult> {
  return await call.server.findUnapproved(call) === undefined ? undefined : noValues();
}

function noValues(): Outcome {
  return { kind: "result", result: NO_VALUES as unknown as ToolResult };
}

/** Throws APPROVAL_REQUIRED for a notification that would need a question. */
export function notificationNeedsNoQuestion(call: CallContext): Maybe<undefined> {
  if (call.isNotification !== true) return undefined;
  // guard: notification-unasked
  if (call.verdict?.kind !== "allow") throw notificationRefused(call, "no rule allows it");
  return passIfApproved(call);
}

async function passIfApproved(call: CallContext): Promise<undefined> {
  if (await call.server.findUnapproved(call) === undefined) return;
  throw notificationRefused(call, "its server is not approved");
}

function notificationRefused({ id }: CallContext, why: string): PmlError {
  return new PmlError("APPROVAL_REQUIRED", `Cannot pass ${quoted(id, 200)} on: ${why}`, {
    hint: `To pass such notifications, allow ${quoted(id, 200)} in permissions`,
  });
}
