/**
 * The marks of tools that destroy, and of tools that changed.
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
 * Returns the mark of a tool that destroys, with `says` before it if only the server claims it; no
 * mark for other tools. Models see it. No decision depends on it.
 */
export function destructiveLabel(
  { annotations }: ToolDefinition,
  { isShipped = false, onlyReads }: {
    /** Whether its server ships with PML. */
    readonly isShipped: boolean | undefined;
    /** Whether the sandbox allows a module only reads; undefined for other servers. */
    readonly onlyReads: boolean | undefined;
  },
): readonly string[] {
  if (onlyReads || objectOf(annotations).destructiveHint !== true) return [];
  // Annotations of built-in servers are PML's own.
  return [isShipped ? "destructive" : "says destructive"];
}
