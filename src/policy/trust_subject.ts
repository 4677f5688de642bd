/**
 * The question about a server that is not approved yet.
 *
 * @module
 */

import { type Call, shownArguments } from "../protocol/call.ts";
import { withoutUndefined } from "../core/json.ts";
import { findKind } from "../servers/kinds.ts";
import type { Unapproved } from "./server_identity.ts";
import type { Approvals } from "./approvals.ts";
import type { Subject } from "./subject.ts";

export { escapeInvisible } from "./_question.ts";

const PAGES =
  "If it shows pages in your client (MCP Apps), they can call tools as the model can: " +
  "the same rules decide";

/** The kinds of questions about servers, in the member `rules` of their subjects. */
export const [FILE_TRUST, SERVER_TRUST] = ["file trust", "trust"];

/** Returns the subject of the question about a call whose server is not approved. */
export function trustSubject(
  call: Call & { readonly server: { readonly kind: string } },
  {
    code,
    facts,
    effect,
    workspace,
    isOfFile,
    isOnlyForReading,
    definition = "not read yet",
    definitionLines,
  }: Pick<Subject, "workspace"> & Omit<Unapproved, "accept" | "changedFrom">,
): Subject {
  // Modules have no pages. Whether another server has pages is unknown before the approval.
  const mayHavePages = code !== "APPROVAL_STALE" &&
    findKind(call.server.kind)?.isSandboxed === false;
  return {
    tool: call.id,
    arguments: shownArguments(call),
    ...withoutUndefined({ members: call.members }),
    definition,
    rules: isOfFile === true ? FILE_TRUST : SERVER_TRUST,
    actor: call.actor,
    workspace,
    facts: [...facts, ...effect === undefined ? [] : [effect], ...mayHavePages ? [PAGES] : []],
    ...definitionLines !== undefined && { definitionLines },
    // A yes that does more than allow reading definitions runs the call, too, although the hints of
    // its tool may be unknown.
    isRisky: code !== "APPROVAL_REQUIRED" || isOnlyForReading !== true,
  };
}

/** Returns the hashes of the definitions whose whole texts the user has read and approved. */
export function wholeDefinitionsOf(
  { definition, changedFrom }: Unapproved,
  approvals: Pick<Approvals, "hasRead">,
): readonly string[] {
  // A question about a change shows only the changed fields.
  const isWhole = changedFrom === undefined || approvals.hasRead(changedFrom);
  return definition !== undefined && isWhole ? [definition] : [];
}
