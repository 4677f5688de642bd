/**
 * The error of a call whose question waits for a user at a terminal.
 *
 * @module
 */

import type { Question } from "../protocol/call.ts";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import type { PendingApproval } from "../policy/approvals.ts";

/** The question that waits, if there is one, and the workspace. */
export interface PendingQuestion {
  readonly pending: PendingApproval | undefined;
  readonly workspace: string;
}

/** Commands that do the same as approving the call, by the code of the error. */
const OTHERWISE: Partial<Record<ErrorCode, string>> = {
  WORKSPACE_UNTRUSTED: " (or `pml trust`)",
  APPROVAL_STALE: " (or `pml lock update`)",
};
/** The codes of errors that list changes. */
const CHANGED: readonly ErrorCode[] = ["APPROVAL_STALE", "NAME_CONFLICT"];
/** How many lines of changes an error contains. */
const FACTS_MAX = 20;
/** How many characters of the changes stand in its message. */
const WHY_MAX = 600;

/** Returns the error with the steps for the user, and then the client. */
export function approvalRequired(
  question: Question,
  { pending, workspace }: PendingQuestion,
): PmlError {
  const code = question.otherwise ?? "APPROVAL_REQUIRED";
  const or = OTHERWISE[code] ?? "";
  // Calls of one server have the same facts.
  const all = new Map(pending?.subjects.map(({ facts = [] }) => [facts.join("\n"), facts]));
  const facts = [...all.values()].flatMap(withoutDefinitions);
  // The terminal shows all of them.
  const changed = facts.slice(0, FACTS_MAX).map((fact) => visible(fact, 500));
  const what = pending?.subjects.map(({ tool }) => tool).join(", ") ?? "this";
  const why = CHANGED.includes(code) && changed.length > 0
    ? `: ${visible(changed.map((line) => line.trim()).join(" "), WHY_MAX)}`
    : "";
  return new PmlError(code, `Cannot run ${quoted(what, 400)} without the user's approval${why}`, {
    hint: `Nothing was run. Ask the user to run \`pml approve\`${or} on a terminal in ` +
      `${JSON.stringify(workspace)}, then make exactly this call again`,
    ...(pending && {
      detail: { approval: pending.id, ...(CHANGED.includes(code) && { changed }) },
    }),
  });
}

/** Leaves out the new texts of a changed tool, which are not approved: a model reads the error. */
function withoutDefinitions(facts: readonly string[]): readonly string[] {
  let isOfTool = false;
  return facts.flatMap((line) => {
    const isDetail = line.startsWith("  ");
    if (!isDetail) isOfTool = line.startsWith("The tool ");
    if (!isOfTool) return [line];
    return isDetail ? [] : [line.replace(/:$/, "")];
  });
}
