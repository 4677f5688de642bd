/**
 * The error of a call whose question was left for a person at a terminal.
 *
 * @module
 */

import type { Question } from "../core/call.ts";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import type { PendingApproval } from "./approvals.ts";

/** What was left, if anything, and in which folder. */
export interface Left {
  readonly left: PendingApproval | undefined;
  readonly workspace: string;
}

/** What does the same as approving the call, by what it fails with. */
const OTHERWISE: Partial<Record<ErrorCode, string>> = {
  WORKSPACE_UNTRUSTED: " (or `pml trust`)",
  APPROVAL_STALE: " (or `pml trust`, or `pml lock update`)",
};
/** Of what it fails with, that which says in what something changed. */
const CHANGED: readonly ErrorCode[] = ["APPROVAL_STALE", "NAME_CONFLICT"];
/** How many lines of what changed an error holds. */
const FACTS_MAX = 20;

/** Makes the error that says what a person has to do, and then the client. */
export function approvalRequired(question: Question, { left, workspace }: Left): PmlError {
  const code = question.otherwise ?? "APPROVAL_REQUIRED";
  const or = OTHERWISE[code] ?? "";
  const facts = left?.subjects.flatMap(({ facts = [] }) => facts) ?? [];
  // The terminal shows all of it.
  const changed = facts.slice(0, FACTS_MAX).map((fact) => visible(fact, 500));
  const what = left?.subjects.map(({ tool }) => tool).join(", ") ?? "this";
  return new PmlError(code, `Cannot run ${quoted(what, 400)} without the person's approval`, {
    hint: `Nothing was run. Ask the person to run \`pml approve\`${or} on a terminal in ` +
      `${JSON.stringify(workspace)}, then make exactly this call again`,
    ...(left && {
      detail: { approval: left.id, ...(CHANGED.includes(code) && { changed }) },
    }),
  });
}
