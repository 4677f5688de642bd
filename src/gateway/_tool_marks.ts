/**
 * The marks that models see at destructive tools, and at tools whose definition has changed.
 *
 * @module
 */

import { objectOf } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/** The mark of a tool whose definition has changed at its server. PML shows the approved one. */
export const CHANGED_MARK = "changed, not approved";
/** Explains the mark to a model. */
export const CHANGED_HINT =
  `${CHANGED_MARK}: this is the approved definition, and a call asks the user`;

/**
 * Returns the mark of a destructive tool; no mark for other tools. The mark begins with "says" if
 * only the server states that the tool is destructive. No decision of PML depends on the mark.
 */
export function destructiveLabel(
  { annotations }: ToolDefinition,
  { isShipped = false, onlyReads }: {
    /** Whether the tool's server ships with PML. */
    readonly isShipped: boolean | undefined;
    /** Whether the sandbox lets a module only read; undefined if the server is not a module. */
    readonly onlyReads: boolean | undefined;
  },
): readonly string[] {
  if (onlyReads || objectOf(annotations).destructiveHint !== true) return [];
  // Annotations of built-in servers are PML's own.
  return [isShipped ? "destructive" : "says destructive"];
}
