/**
 * The question about a server that is not approved yet.
 *
 * @module
 */

import { type Call, shownArguments } from "../protocol/call.ts";
import { defined } from "../core/json.ts";
import { kindNamed } from "../servers/kinds.ts";
import type { Unapproved } from "./server_identity.ts";
import type { Approvals } from "./approvals.ts";
import type { Subject } from "./subject.ts";

export { unhidden } from "./_question.ts";

const PAGES =
  "If it shows pages in your client (MCP Apps), they can call tools as the model can: " +
  "the same rules decide";

/** Returns the subject of the question about a call whose server is not approved. */
export function trustSubject(
  call: Call & { readonly server: { readonly kind: string } },
  { code, facts, workspace, isLook, definition = "not read yet", definitionLines }:
    & Pick<Subject, "workspace">
    & Pick<Unapproved, "code" | "facts" | "isLook" | "definition" | "definitionLines">,
): Subject {
  // Modules have no pages. Those of other servers are unknown before the approval.
  const mayHavePages = code !== "APPROVAL_STALE" &&
    kindNamed(call.server.kind)?.isSandboxed === false;
  return {
    tool: call.id,
    arguments: shownArguments(call),
    ...defined({ members: call.members }),
    definition,
    rules: "trust",
    actor: call.actor,
    workspace,
    facts: mayHavePages ? [...facts, PAGES] : facts,
    ...definitionLines !== undefined && { definitionLines },
    // A yes lasts, and also runs the call, whose hints are not known yet.
    isRisky: code !== "APPROVAL_REQUIRED" || isLook !== true,
  };
}

/** Returns the hashes of the definitions whose whole texts the user has read and approved. */
export function readIn(
  { definition, changedFrom }: Unapproved,
  approvals: Pick<Approvals, "hasRead">,
): readonly string[] {
  // A question about a change shows only the changed fields.
  const isWhole = changedFrom === undefined || approvals.hasRead(changedFrom);
  return definition !== undefined && isWhole ? [definition] : [];
}
