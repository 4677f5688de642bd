/**
 * Asks the user about calls that no rule allows.
 *
 * @module
 */

import { type ApprovalHost, askUser, assertNotDenied, keepAnswer } from "../decisions.ts";
import { isAboutAll, isOfOffer } from "../offer_access.ts";
import type { CallContext } from "../context.ts";
import type { ApprovalAnswer } from "../../protocol/call.ts";
import type { Check, CheckResult } from "./check.ts";

/** Returns a check that lets allowed calls pass, and asks about the others. */
export function approved(host: ApprovalHost): Check {
  return (call) => {
    // The rules may have changed while another check waited.
    assertNotDenied(call);
    return call.verdict?.kind === "allow" ? undefined : askedFor(call, host);
  };
}

/** The approvals that need no record if the checks begin again: calls in a session, and answers. */
const RECORDED = new WeakSet<CallContext | ApprovalAnswer>();

async function askedFor(call: CallContext, host: ApprovalHost): Promise<CheckResult> {
  // An answer to a question about this call decides, whatever other answers are there.
  if (call.answer === undefined && await host.sessions.covers(call)) {
    if (!RECORDED.has(call)) {
      RECORDED.add(call);
      await host.record({ event: "approved", call, detail: { answer: "session" } });
    }
    return undefined;
  }
  const subject = await host.subjectOf(call);
  // A rule cannot name one address.
  const rule = isOfOffer(call) && !isAboutAll(call) ? undefined : host.rules.offered(call);
  const lasting = await host.offers.of(call);
  const { answer } = call;
  const result = await askUser([call], host, {
    subjects: [subject],
    answer,
    rule,
    reach: rule && host.rules.reach(call),
    lasting,
    isShared: isAboutAll(call),
  });
  if (result.kind === "ask") return result;
  if (result.kind !== "Yes" && result.kind !== "terminal") {
    await keepAnswer(call, { ...lasting, reply: result.kind }, host);
  } else if (answer === undefined || !RECORDED.has(answer)) {
    const channel = result.kind === "Yes" ? "client" : result.kind;
    await host.record({ event: "approved", call, detail: { channel } });
  }
  // The handle is used up, and the server does not get it.
  call.answer = undefined;
  // The answer covers exactly the subject of the question, also if the checks begin again.
  call.approval = () => {
    const again = host.approvals.ticket(subject);
    RECORDED.add(again);
    return again;
  };
  return undefined;
}
