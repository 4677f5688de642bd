/**
 * The error of a call whose question waits for a user at a terminal.
 *
 * @module
 */

import type { Question } from "../protocol/call.ts";
import { type ErrorCode, NOTHING_RAN, PmlError, SAME_CALL_AGAIN } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import { joinSentences } from "../core/sentences.ts";
import type { PendingApproval } from "../policy/approvals.ts";

/** The saved question, and the workspace in which the user answers it. */
export interface PendingQuestion {
  readonly pending: PendingApproval | undefined;
  readonly workspace: string;
  /** Whether the user answers on the page. */
  readonly isOnPage?: boolean;
}

/** Commands that do the same as approving the call, by the code of the error. */
const ALTERNATIVE_COMMANDS: Partial<Record<ErrorCode, string>> = {
  WORKSPACE_UNTRUSTED: " (or `pml trust`)",
  APPROVAL_STALE: " (or `pml lock update`)",
};
/** The codes of errors that list the changes since the approval. */
const CODES_OF_CHANGES: readonly ErrorCode[] = ["APPROVAL_STALE", "NAME_CONFLICT"];
/** The maximum number of lines of changes in an error. */
const FACTS_MAX = 20;
/** The maximum length of the changes in the message of an error, in characters. */
const CHANGES_LENGTH_MAX = 600;

/**
 * Returns the error. Its hint contains the steps of the user and of the model.
 */
export function approvalRequired(
  question: Question,
  { pending, workspace, isOnPage = false }: PendingQuestion,
): PmlError {
  const code = question.otherwise ?? "APPROVAL_REQUIRED";
  const alternative = ALTERNATIVE_COMMANDS[code] ?? "";
  // Calls of one server have the same facts.
  const distinctFacts = new Map(
    pending?.subjects.map(({ facts = [] }) => [facts.join("\n"), facts]),
  );
  const facts = [...distinctFacts.values()].flatMap(withoutDefinitions);
  // `pml approve` shows all facts.
  const changed = facts.slice(0, FACTS_MAX).map((fact) => visible(fact, 500));
  const tools = pending?.subjects.map(({ tool }) => tool).join(", ") ?? "this";
  const why = CODES_OF_CHANGES.includes(code) && changed.length > 0
    ? `: ${visible(joinSentences(changed), CHANGES_LENGTH_MAX)}`
    : "";
  return new PmlError(code, `Cannot run ${quoted(tools, 400)} without the user's approval${why}`, {
    hint: isOnPage
      ? `${NOTHING_RAN}. Ask the user to answer on the page, which \`pml page\` opens, then ` +
        SAME_CALL_AGAIN
      : `${NOTHING_RAN}. Ask the user to run \`pml approve\`${alternative} on a terminal in ` +
        `${JSON.stringify(workspace)}, then ${SAME_CALL_AGAIN}`,
    ...(pending && {
      detail: { approval: pending.id, ...(CODES_OF_CHANGES.includes(code) && { changed }) },
    }),
  });
}

/**
 * Removes the new texts of a changed tool from facts: a model reads the error, and must not read
 * texts that the user has not approved.
 */
function withoutDefinitions(facts: readonly string[]): readonly string[] {
  let isOfTool = false;
  return facts.flatMap((line) => {
    const isDetail = line.startsWith("  ");
    if (!isDetail) isOfTool = line.startsWith("The tool ");
    if (!isOfTool) return [line];
    return isDetail ? [] : [line.replace(/:$/, "")];
  });
}
