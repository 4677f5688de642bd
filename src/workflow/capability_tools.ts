/**
 * The tools that code or a plan names.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import { codeParts } from "./_code_literals.ts";
import type { Capability } from "./capability.ts";

const MEMBER = String
  .raw`\s*(?:\?\.|\.)\s*([A-Za-z_$][\w$]*)|\s*(?:\?\.)?\s*\[\s*("|'|\x60)([^"'\x60\n]*)\2\s*\]`;
const CALLED = new RegExp(
  String.raw`(?<![\w$.])mcp(?:${MEMBER})(?:${MEMBER.replace(String.raw`\2`, String.raw`\5`)})`,
  "g",
);

/**
 * Returns the names `server:tool` in the text of a capability, as far as they stand there: a plan
 * has them as they are, code as `mcp.server.tool`. What code puts together when it runs is not
 * found; what it called is known from the run.
 */
export function namedTools({ kind, text }: Pick<Capability, "kind" | "text">): readonly string[] {
  if (kind === "plan") {
    const { tasks }: { readonly tasks?: unknown } = JSON.parse(text);
    const all = Array.isArray(tasks) ? tasks : [];
    return all.flatMap((task) =>
      isObject(task) && typeof task.tool === "string" ? [task.tool] : []
    );
  }
  const { bare } = codeParts(text);
  return [...text.matchAll(CALLED)].flatMap((found) => {
    const [, server = found[3], , , tool = found[6]] = found;
    // What stands in a comment or a text is blank there.
    const isCode = bare[found.index] === "m";
    return isCode && server !== undefined && tool !== undefined ? [`${server}:${tool}`] : [];
  });
}
