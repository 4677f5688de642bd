/**
 * Asks the user about a server, a tool or code that is not approved, before its code runs.
 *
 * @module
 */

import type { Maybe } from "../../core/maybe.ts";
import type { Unapproved } from "../../policy/server_identity.ts";
import { type ApprovalHost, askUser } from "../decisions.ts";
import { trustSubject, wholeDefinitionsOf } from "../../policy/trust_subject.ts";
import type { CallContext } from "../context.ts";
import type { Check, CheckResult } from "./check.ts";

/**
 * Returns a check that lets a call pass if its server is approved, and otherwise asks. After an
 * approval all checks begin again, because another server may have this name by then. The question
 * about the server showed the call itself, so the user is not asked about it a second time.
 */
export function serverIsTrusted(host: ApprovalHost): Check {
  return (call) => {
    const unapproved = call.server.findUnapproved(call);
    if (unapproved instanceof Promise || unapproved !== undefined) {
      return askIfUnapproved(call, unapproved, host);
    }
    return endTrustCheck(call, host);
  };
}

async function askIfUnapproved(
  call: CallContext,
  lookup: Maybe<Unapproved | undefined>,
  host: ApprovalHost,
): Promise<CheckResult> {
  const unapproved = await lookup;
  if (unapproved === undefined) return await endTrustCheck(call, host);
  const { approvals, workspace } = host;
  const { code, isOnlyForReading = false, facts, accept } = unapproved;
  const channel = call.answer?.channel;
  const result = await askUser([call], host, {
    answer: call.answer,
    subjects: [trustSubject(call, { ...unapproved, workspace })],
  });
  if (result.kind === "ask") {
    return { kind: "ask", question: { ...result.question, otherwise: code } };
  }
  await accept();
  await approvals.markRead(wholeDefinitionsOf(unapproved, approvals));
  call.approvedWith = isOnlyForReading ? undefined : host.currentConfig();
  await host.record({
    event: "approved",
    call,
    detail: { trusted: facts, ...channel && { channel } },
  });
  // The answer is valid once.
  call.answer = undefined;
  // guard: trust-again
  return "restart";
}

/** Ends the check of an approved server. */
function endTrustCheck(call: CallContext, host: ApprovalHost): Maybe<CheckResult> {
  // guard: trust-version
  if (!call.isCurrent()) return "restart";
  const isCovered = call.approvedWith !== undefined && call.approvedWith === host.currentConfig();
  return isCovered && call.verdict?.kind !== "allow" ? coverCall(call, host) : undefined;
}

/** Approves a call that the question about its server showed. */
async function coverCall(
  call: CallContext,
  host: ApprovalHost,
): Promise<CheckResult> {
  const subject = await host.subjectOf(call);
  // The question about the server did not show the texts of the tool.
  if (subject.definitionLines === undefined) call.answer = host.approvals.answerYes(subject);
  return undefined;
}
