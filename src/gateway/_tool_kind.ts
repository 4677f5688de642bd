/**
 * Whether a tool reads, writes or destroys, as far as anybody knows, and who says so.
 *
 * @module
 */

import { objectOf } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/** Marks a tool that its server defines otherwise by now. The approved definition is shown. */
export const CHANGED = "changed, not approved";
/** Explains the mark to a model. */
export const CHANGED_HINT = `${CHANGED}: this is the approved definition, and a call asks the user`;

/**
 * Returns `, read`, `, write` or `, destructive`, with `says` before it where only the server claims
 * it; nothing where nobody knows. It is told to models, and decides nothing.
 */
export function kindOf(
  { annotations }: ToolDefinition,
  { isShipped = false, onlyReads }: {
    /** Whether its server ships with PML. */
    readonly isShipped: boolean | undefined;
    /** What the sandbox holds a module to; undefined for other servers. */
    readonly onlyReads: boolean | undefined;
  },
): string {
  if (onlyReads) return ", read";
  const claim = claimOf(objectOf(annotations));
  if (claim === undefined) return onlyReads === undefined ? "" : ", write";
  // What ships with PML is what PML itself says.
  return isShipped ? `, ${claim}` : `, says ${claim}`;
}

function claimOf({ readOnlyHint, destructiveHint }: Readonly<Record<string, unknown>>) {
  if (destructiveHint === true) return "destructive";
  if (readOnlyHint === true) return "read";
  return readOnlyHint === false || destructiveHint === false ? "write" : undefined;
}
