/**
 * The calls that wait for `pml approve`. A call stops waiting when the rules or the trust have
 * changed and now allow or deny it.
 *
 * @module
 */

import type { Approvals, PendingApproval } from "../policy/approvals.ts";
import type { Policy } from "../policy/policy.ts";
import type { Subject } from "../policy/subject.ts";
import { FILE_TRUST, SERVER_TRUST } from "../policy/trust_subject.ts";
import { Cancellation } from "../core/cancellation.ts";
import { type JsonObject, withoutUndefined } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";
import { NO_CLIENT } from "../protocol/call.ts";
import { type CallPreflight, findQuestion, waitForPreflight } from "./ask_all.ts";
import { type ApprovalHost, boundDecision, decisionOf } from "./decisions.ts";

/** The collaborators of `waitingCalls()`. */
export interface WaitingParts {
  readonly policy: Policy;
  readonly approvals: Pick<Approvals, "pendingApprovals" | "withdraw">;
  /** Writes an event to the journal. */
  readonly record: (event: "settled", about: JsonObject) => void;
}

/** Why a call no longer waits. */
type WithdrawReason = "denied" | "allowed" | "trusted";

/**
 * Returns the calls that wait, the oldest first. Removes calls that the rules now allow or
 * deny, or whose workspace file the user now trusts. Keeps the calls of other workspaces and of
 * identities, because this policy does not contain their rules.
 */
export async function waitingCalls(
  { policy, approvals, record }: WaitingParts,
): Promise<readonly PendingApproval[]> {
  const pending = await approvals.pendingApprovals();
  if (pending.length > 0 && !policy.isCurrent()) await policy.refresh();
  const waiting: PendingApproval[] = [];
  for (const approval of pending) {
    const why = await findReason(approval, policy);
    if (why === undefined) waiting.push(approval);
    else if (await approvals.withdraw(approval.id)) {
      record("settled", { id: approval.id, tools: approval.subjects.map(({ tool }) => tool), why });
    }
  }
  return waiting;
}

async function findReason(
  { subjects, otherwise: serverError }: PendingApproval,
  policy: Policy,
): Promise<WithdrawReason | undefined> {
  if (!isOfUserHere(subjects, policy)) return undefined;
  const verdicts = subjects.map((subject) => verdictOf(subject, policy));
  if (verdicts.every((verdict) => verdict === "denied")) return "denied";
  if (serverError !== undefined) {
    // Calls with other questions about servers, for example about a changed definition, still wait.
    return await areTrusted(subjects, policy) ? "trusted" : undefined;
  }
  return verdicts.every((verdict) => verdict !== undefined) ? "allowed" : undefined;
}

/** Returns whether all calls are the user's own in this workspace, to which the current rules apply. */
function isOfUserHere(subjects: readonly Subject[], { config: { workspace } }: Policy): boolean {
  return subjects.every((subject) => subject.actor === "local" && subject.workspace === workspace);
}

function verdictOf(subject: Subject, { now }: Policy): "denied" | "allowed" | undefined {
  const { tool: id, arguments: args, members } = subject;
  const { kind } = decisionOf(
    now.judge,
    { id, arguments: args, ...withoutUndefined({ members }) },
    undefined,
  );
  if (kind === "deny") return "denied";
  // The call waits although the same decision allows it, for example because a rule has ended.
  return kind === "allow" && subject.rules !== boundDecision(now, subject) ? "allowed" : undefined;
}

/** Returns whether the user now trusts the files and the code that the question was about. */
async function areTrusted(subjects: readonly Subject[], policy: Policy): Promise<boolean> {
  const aboutFiles = subjects.filter(({ rules }) => rules === FILE_TRUST);
  for (const { tool } of aboutFiles) {
    if (await policy.findUnapproved(splitToolId(tool).server) !== undefined) return false;
  }
  return aboutFiles.length > 0;
}

/**
 * Returns whether an answer can no longer count, because PML would now ask differently about the
 * call: the file or the code of its server needs an approval that the question did not show, or the
 * rules decide differently. Checks only the user's own calls in this workspace.
 */
export async function isOutdated({ subjects }: PendingApproval, policy: Policy): Promise<boolean> {
  if (!isOfUserHere(subjects, policy)) return false;
  for (const subject of subjects) {
    const { tool, rules, facts = [], isSaved } = subject;
    // Neither saving a capability nor the approval of a server depends on the rules.
    if (isSaved === true || rules === SERVER_TRUST) continue;
    const unapproved = await policy.findUnapproved(splitToolId(tool).server);
    if (unapproved !== undefined) {
      const isShown = rules === FILE_TRUST &&
        unapproved.facts.every((fact, index) => facts[index] === fact);
      // guard: outdated-yes
      if (!isShown) return true;
    } else if (rules !== FILE_TRUST && rules !== boundDecision(policy.now, subject)) return true;
  }
  return false;
}

/**
 * Replaces an outdated question by a new question about the same call. Returns the new question;
 * undefined if PML need not ask about the call now, or if only its client can ask.
 */
export async function replaceOutdated(
  { id, subjects: [subject, ...more] }: PendingApproval,
  host: ApprovalHost,
  checker: CallPreflight,
): Promise<PendingApproval | undefined> {
  const { approvals, rules } = host;
  await approvals.withdraw(id);
  if (subject === undefined || more.length > 0) return undefined;
  const { tool, arguments: args, members, actor } = subject;
  // A question about a method other than `tools/call` does not contain the params of the request.
  if (splitToolId(tool).tool.startsWith("@")) return undefined;
  using cancellation = new Cancellation();
  const question = await waitForPreflight(findQuestion(
    {
      ...{ id: tool, arguments: args, actor, via: "call", client: NO_CLIENT, cancellation },
      ...withoutUndefined({ members }),
      callId: crypto.randomUUID(),
    },
    host,
    checker,
  ));
  if (question === undefined) return undefined;
  const { call, unapproved } = question;
  const { handle } = approvals.open(
    [question.subject],
    unapproved === undefined
      ? {
        ...await host.offers.findAnswers(call),
        always: rules.offeredRule(call),
        reach: rules.reachOf(call),
      }
      : {},
  );
  return await approvals.saveForTerminal(handle, unapproved?.code);
}
