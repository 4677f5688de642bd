/**
 * The calls that wait for `pml approve`: those that the present rules or the present trust decide
 * wait no more.
 *
 * @module
 */

import type { Approvals, PendingApproval } from "../policy/approvals.ts";
import type { Policy } from "../policy/policy.ts";
import type { Subject } from "../policy/subject.ts";
import { defined, type JsonObject } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";
import { decisionOf } from "./decisions.ts";

/** The collaborators of `waitingCalls()`. */
export interface WaitingParts {
  readonly policy: Policy;
  readonly approvals: Pick<Approvals, "pendingApprovals" | "withdraw">;
  /** Writes an event to the journal. */
  readonly record: (event: "settled", about: JsonObject) => void;
}

/** Why a call waits no more. */
type Settled = "denied" | "allowed" | "trusted";

/**
 * Returns the calls that wait, the oldest first. Removes those that wait no more. It judges only the
 * user's calls in this workspace: other rules apply to the others.
 */
export async function waitingCalls(
  { policy, approvals, record }: WaitingParts,
): Promise<readonly PendingApproval[]> {
  const pending = await approvals.pendingApprovals();
  if (pending.length > 0 && !policy.isCurrent()) await policy.refresh();
  const waiting: PendingApproval[] = [];
  for (const one of pending) {
    const why = await settledBy(one, policy);
    if (why === undefined) waiting.push(one);
    else if (await approvals.withdraw(one.id)) {
      record("settled", { id: one.id, tools: one.subjects.map(({ tool }) => tool), why });
    }
  }
  return waiting;
}

async function settledBy(
  { subjects, otherwise }: PendingApproval,
  policy: Policy,
): Promise<Settled | undefined> {
  const { config: { workspace } } = policy;
  const isHere = subjects.every((one) => one.actor === "local" && one.workspace === workspace);
  if (!isHere) return undefined;
  const verdicts = subjects.map((subject) => verdictOf(subject, policy));
  if (verdicts.every((verdict) => verdict === "denied")) return "denied";
  if (otherwise !== undefined) {
    // Other questions about servers, such as those about a changed definition, keep their call.
    return otherwise === "WORKSPACE_UNTRUSTED" && await areTrusted(subjects, policy)
      ? "trusted"
      : undefined;
  }
  return verdicts.every((verdict) => verdict !== undefined) ? "allowed" : undefined;
}

function verdictOf(subject: Subject, { now }: Policy): "denied" | "allowed" | undefined {
  const { kind } = decisionOf(
    now.judge,
    { id: subject.tool, arguments: subject.arguments, ...defined({ members: subject.members }) },
    undefined,
  );
  if (kind === "deny") return "denied";
  // The same rules asked before, for example because a rule of several tools ended.
  return kind === "allow" && subject.rules !== now.rules() ? "allowed" : undefined;
}

/** Returns whether the file is trusted now that the question was about. */
async function areTrusted(subjects: readonly Subject[], policy: Policy): Promise<boolean> {
  for (const { tool, rules } of subjects) {
    if (rules !== "trust") continue;
    if (await policy.unapproved(splitToolId(tool).server) !== undefined) return false;
  }
  return true;
}
