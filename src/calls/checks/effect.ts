/**
 * Asks again about tools that an answer for several tools covered, and whose hints changed since.
 *
 * @module
 */

import type { MultiToolRules } from "../../policy/multi_tool_rules.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { CallContext } from "../context.ts";
import type { Check } from "./check.ts";
import type { ApprovalHost } from "../decisions.ts";

/**
 * Returns a check that lets `approved()` ask about a call whose rule came from an answer for several
 * tools, if its tool only read then and does not now. The server of the call is trusted.
 */
export function effectIsUnchanged(
  rules: MultiToolRules,
  host: Pick<ApprovalHost, "read">,
): Check {
  const decide = (call: CallContext, definition: ToolDefinition) => {
    const { verdict } = call;
    if (verdict === undefined || !rules.isOver(verdict, definition)) return undefined;
    // The question about the change showed the call.
    const isCovered = call.approvedWith !== undefined && call.approvedWith === host.read();
    if (!isCovered) call.verdict = { ...verdict, kind: "ask" };
    return undefined;
  };
  return (call) => {
    const { verdict, id, method, server } = call;
    // Such an answer writes the names of tools alone. The hints of built-in servers are PML's own.
    const isNamed = verdict?.kind === "allow" && verdict.rule === id && method === undefined;
    if (!isNamed || server.origin.isShipped) return undefined;
    const definition = call.definition();
    return definition instanceof Promise
      ? definition.then((loaded) => decide(call, loaded))
      : decide(call, definition);
  };
}
