/**
 * Compares tools with the patterns that servers name them by: globs of their names, as
 * `git_*`, `git__*`, `git:*` or `*`.
 *
 * @module
 */

import { GlobSet } from "../core/glob.ts";
import { matches, type Pattern } from "../core/pattern.ts";
import { splitToolId, type ToolId, wireName } from "../core/tool_id.ts";

const STEPS = 100_000;

/** Returns the test of whether a tool fits a pattern of both lists. */
export function fits(
  wanted: readonly string[],
  allowed: readonly Pattern[],
): (id: ToolId) => boolean {
  const globs = new GlobSet(wanted);
  const isWanted = (name: string) => {
    const found = globs.covering(name, { steps: { left: STEPS } });
    return found !== undefined && found.size > 0;
  };
  return (id) => {
    // The person's list is the bound, whatever a server asks for.
    if (!allowed.some((pattern) => matches(pattern, id))) return false;
    return [id, wireName(id), splitToolId(id).tool].some(isWanted);
  };
}
