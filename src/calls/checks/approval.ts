/**
 * Asks the user about calls that no rule allows.
 *
 * @module
 */

import type { MultiToolRules } from "../../policy/multi_tool_rules.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import {
  type ApprovalHost,
  askUser,
  assertNotDenied,
  assertNotRefused,
  keepAnswer,
} from "../decisions.ts";
import { isAboutAll, isOfferRequest } from "../offer_access.ts";
import type { CallContext } from "../context.ts";
import type { ApprovalAnswer } from "../../protocol/call.ts";
import type { Check, CheckResult } from "./check.ts";

/**
 * Returns a check that changes the verdict of a call to "ask" if the user's answer for several
 * tools added its rule, and the rule has ended (`MultiToolRules`): the tool no longer only reads.
 * `approved()` then asks. This check must come after the check of the server's trust.
 */
export function effectIsUnchanged(
  rules: MultiToolRules,
  host: Pick<ApprovalHost, "currentConfig">,
): Check {
  const decide = (call: CallContext, definition: ToolDefinition) => {
    const { verdict } = call;
    if (verdict === undefined || !rules.hasEnded(verdict, definition)) return undefined;
    // The user already approved this call with the change, under the same configuration.
    const isCovered = call.approvedWith !== undefined && call.approvedWith === host.currentConfig();
    if (!isCovered) call.verdict = { ...verdict, kind: "ask" };
    return undefined;
  };
  return (call) => {
    const { verdict, id, method, server } = call;
    // An answer for several tools adds one rule for each tool, which is the tool's id. The tools of
    // built-in servers do not change.
    const isRuledByName = verdict?.kind === "allow" && verdict.rule === id && method === undefined;
    if (!isRuledByName || server.origin.isShipped) return undefined;
    const definition = call.definition();
    return definition instanceof Promise
      ? definition.then((loaded) => decide(call, loaded))
      : decide(call, definition);
  };
}

/** Returns a check that asks the user about every call that no rule allows. */
export function approved(host: ApprovalHost): Check {
  return (call) => {
    // The rules may have changed while another check waited.
    assertNotDenied(call);
    return call.verdict?.kind === "allow" ? undefined : askAboutCall(call, host);
  };
}

/**
 * The approvals that are already in the journal, so that they are not recorded again if the checks
 * restart: calls that an answer for the session covers, and answers of the user.
 */
const RECORDED_APPROVALS = new WeakSet<CallContext | ApprovalAnswer>();

async function askAboutCall(call: CallContext, host: ApprovalHost): Promise<CheckResult> {
  // The answer to a question about this call has priority over an answer for the session.
  if (call.answer === undefined && await host.sessions.covers(call)) {
    if (!RECORDED_APPROVALS.has(call)) {
      RECORDED_APPROVALS.add(call);
      await host.record({ event: "approved", call, detail: { answer: "session" } });
    }
    return undefined;
  }
  await assertNotRefused(call);
  const subject = await host.subjectOf(call);
  // Rules have no syntax for one address, so "Always" is not offered.
  const rule = isOfferRequest(call) && !isAboutAll(call) ? undefined : host.rules.offeredRule(call);
  const lasting = await host.offers.findAnswers(call);
  const { answer } = call;
  const result = await askUser([call], host, {
    subjects: [subject],
    answer,
    rule,
    reach: rule && host.rules.reachOf(call),
    lasting,
    isShared: isAboutAll(call),
  });
  if (result.kind === "ask") return result;
  if (result.kind !== "Yes" && result.kind !== "terminal") {
    await keepAnswer(call, { ...lasting, reply: result.kind, channel: answer?.channel }, host);
  } else if (answer === undefined || !RECORDED_APPROVALS.has(answer)) {
    const channel = result.kind === "Yes" ? answer?.channel ?? "client" : result.kind;
    await host.record({ event: "approved", call, detail: { channel } });
  }
  // The answer is valid once, and the server must not get it.
  call.answer = undefined;
  // If the checks begin again, the new answer covers exactly the subject of the question.
  call.approval = () => {
    const newAnswer = host.approvals.answerYes(subject);
    RECORDED_APPROVALS.add(newAnswer);
    return newAnswer;
  };
  return undefined;
}
