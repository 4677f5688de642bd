/**
 * Asks about a call again if its rule came from an answer for several tools, and its tool no longer
 * only reads.
 *
 * @module
 */

import type { MultiToolRules } from "../../policy/multi_tool_rules.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { CallContext } from "../context.ts";
import type { Check } from "./check.ts";
import type { ApprovalHost } from "../decisions.ts";

/**
 * Returns a check that changes the verdict of a call to "ask" if its rule came from an answer for
 * several tools and has ended (`MultiToolRules`). The later check `approved()` then asks. It must
 * come after the check of the server's trust.
 */
export function effectIsUnchanged(
  rules: MultiToolRules,
  host: Pick<ApprovalHost, "currentConfig">,
): Check {
  const decide = (call: CallContext, definition: ToolDefinition) => {
    const { verdict } = call;
    if (verdict === undefined || !rules.hasEnded(verdict, definition)) return undefined;
    // The user already approved this call with the change, under the same configuration.
    const isCovered = call.approvedWith !== undefined && call.approvedWith === host.currentConfig();
    if (!isCovered) call.verdict = { ...verdict, kind: "ask" };
    return undefined;
  };
  return (call) => {
    const { verdict, id, method, server } = call;
    // Such an answer writes rules that are the name of one tool. Built-in servers have fixed hints.
    const isRuledByName = verdict?.kind === "allow" && verdict.rule === id && method === undefined;
    if (!isRuledByName || server.origin.isShipped) return undefined;
    const definition = call.definition();
    return definition instanceof Promise
      ? definition.then((loaded) => decide(call, loaded))
      : decide(call, definition);
  };
}
