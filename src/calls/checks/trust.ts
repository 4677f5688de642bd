/**
 * Asks the user about a server, a tool or code that is not approved, before anything of it runs.
 *
 * @module
 */

import type { Maybe } from "../../core/maybe.ts";
import type { Unapproved } from "../../policy/server_identity.ts";
import { type AskCallOptions, askUser } from "../decisions.ts";
import { readIn, trustSubject } from "../../policy/trust_subject.ts";
import type { CallContext } from "../context.ts";
import type { Check, CheckResult } from "./check.ts";

/** The options of `serverIsTrusted`. */
export interface TrustOptions extends Pick<AskCallOptions, "approvals" | "subjectOf" | "record"> {
  /** Returns the configuration that was read: the same object as long as no file changes. */
  readonly read: () => object;
  readonly workspace: () => string;
}

/**
 * Returns a check that lets a call pass if its server is approved, and otherwise asks. After an
 * approval all checks begin again, because another server may have this name by then. The question
 * about the server showed the call itself, so the user is not asked about it a second time.
 */
export function serverIsTrusted(options: TrustOptions): Check {
  return (call) => {
    const unapproved = call.server.unapproved(call);
    if (unapproved instanceof Promise || unapproved !== undefined) {
      return approvedLater(call, unapproved, options);
    }
    return passed(call, options);
  };
}

async function approvedLater(
  call: CallContext,
  looking: Maybe<Unapproved | undefined>,
  options: TrustOptions,
): Promise<CheckResult> {
  const unapproved = await looking;
  if (unapproved === undefined) return await passed(call, options);
  const { approvals, record, workspace, read } = options;
  const { code, isLook = false, facts, accept } = unapproved;
  const result = await askUser([call], {
    ...options,
    answer: call.answer,
    subjects: [trustSubject(call, { ...unapproved, workspace: workspace() })],
  });
  if (result.kind === "ask") {
    return { kind: "ask", question: { ...result.question, otherwise: code } };
  }
  await accept();
  await approvals.markRead(readIn(unapproved, approvals));
  call.approvedWith = isLook ? undefined : read();
  await record({ event: "approved", call, detail: { trusted: facts } });
  // The handle is used up.
  call.answer = undefined;
  // guard: trust-again
  return "restart";
}

/** Ends the check of an approved server. */
function passed(call: CallContext, options: TrustOptions): Maybe<CheckResult> {
  // guard: trust-version
  if (!call.isCurrent()) return "restart";
  const isCovered = call.approvedWith !== undefined && call.approvedWith === options.read();
  return isCovered && call.verdict?.kind !== "allow" ? coverCall(call, options) : undefined;
}

/** The answer to the question about the server covers the call that it showed. */
async function coverCall(
  call: CallContext,
  { approvals, subjectOf }: TrustOptions,
): Promise<CheckResult> {
  const subject = await subjectOf(call);
  // The question about the server did not show the texts of the tool.
  if (subject.definitionLines === undefined) call.answer = approvals.ticket(subject);
  return undefined;
}
