/**
 * Refuses notifications that no rule allows: they have no answer that could be a question.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { CallContext } from "../context.ts";

/** Throws APPROVAL_REQUIRED for a notification that would need a question. */
export function notificationNeedsNoQuestion(call: CallContext): Maybe<undefined> {
  if (call.isNotification !== true) return undefined;
  // guard: notification-unasked
  if (call.verdict?.kind !== "allow") throw unasked(call, "no rule allows it");
  return withoutApproval(call);
}

async function withoutApproval(call: CallContext): Promise<undefined> {
  if (await call.server.unapproved(call) === undefined) return;
  throw unasked(call, "its server is not approved");
}

function unasked({ id }: CallContext, why: string): PmlError {
  return new PmlError("APPROVAL_REQUIRED", `Cannot pass ${quoted(id, 200)} on: ${why}`, {
    hint: `To pass such notifications, allow ${quoted(id, 200)} in permissions`,
  });
}
