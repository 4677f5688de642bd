/**
 * Whether a tool reads, writes or destroys, as far as anybody knows, and who says so.
 *
 * @module
 */

import { objectOf } from "../core/json.ts";
import type { ToolDefinition } from "../core/tool.ts";

/**
 * Returns `, read`, `, write` or `, destructive`, with `says` before it where only the server claims
 * it; nothing where nobody knows. It is told to models, and decides nothing.
 */
export function kindOf(
  { annotations }: ToolDefinition,
  { origin, onlyReads }: {
    readonly origin: string;
    /** What the sandbox holds a module to; undefined for other servers. */
    readonly onlyReads: boolean | undefined;
  },
): string {
  if (onlyReads) return ", read";
  const claim = claimOf(objectOf(annotations));
  if (claim === undefined) return onlyReads === undefined ? "" : ", write";
  // What ships with PML is what PML itself says.
  return origin === "builtin" ? `, ${claim}` : `, says ${claim}`;
}

function claimOf({ readOnlyHint, destructiveHint }: Readonly<Record<string, unknown>>) {
  if (destructiveHint === true) return "destructive";
  if (readOnlyHint === true) return "read";
  return readOnlyHint === false || destructiveHint === false ? "write" : undefined;
}
