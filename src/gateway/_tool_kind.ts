/**
 * Describes whether a tool reads, writes or destroys, and the source of that claim.
 *
 * @module
 */

import { objectOf } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/** Marks a tool whose server has another definition now. The approved definition is shown. */
export const CHANGED = "changed, not approved";
/** Explains the mark to a model. */
export const CHANGED_HINT = `${CHANGED}: this is the approved definition, and a call asks the user`;

/**
 * Returns `, read`, `, write` or `, destructive`, with `says` before it if only the server claims
 * it; "" if it is unknown. Models see it. No decision depends on it.
 */
export function effectLabel(
  { annotations }: ToolDefinition,
  { isShipped = false, onlyReads }: {
    /** Whether its server ships with PML. */
    readonly isShipped: boolean | undefined;
    /** Whether the sandbox allows a module only reads; undefined for other servers. */
    readonly onlyReads: boolean | undefined;
  },
): string {
  if (onlyReads) return ", read";
  const claim = claimOf(objectOf(annotations));
  if (claim === undefined) return onlyReads === undefined ? "" : ", write";
  // Annotations of built-in servers are PML's own.
  return isShipped ? `, ${claim}` : `, says ${claim}`;
}

function claimOf({ readOnlyHint, destructiveHint }: Readonly<Record<string, unknown>>) {
  if (destructiveHint === true) return "destructive";
  if (readOnlyHint === true) return "read";
  return readOnlyHint === false || destructiveHint === false ? "write" : undefined;
}
