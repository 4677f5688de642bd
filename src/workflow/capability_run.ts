/**
 * Runs the code or the plan of a capability with the arguments of a call.
 *
 * @module
 */

import { textResult, type ToolResult } from "../protocol/call.ts";
import { isObject, type Json, type JsonObject, withoutUndefined } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import { type Capability, capabilityHash } from "../servers/capability/capability.ts";
import { type CodeParts, runCode } from "./code.ts";
import { failureText } from "./code_tool.ts";
import { withRun } from "./run_scope.ts";
import { Plans, type PlansParts } from "./plans.ts";
import type { PlanOutcome } from "./_plan_answer.ts";
import type { CapabilityCall } from "./capability_call.ts";

/** The collaborators of capabilities. */
export interface CapabilityParts extends PlansParts, CodeParts {}

/** Runs a capability. */
export async function runCapability(
  { kind, text, ...rest }: Capability,
  { call, id, depth, isForeign, maxCalls: calls, callTool }: CapabilityCall,
  parts: CapabilityParts,
): Promise<ToolResult> {
  const { actor, cancellation: { signal }, client } = call;
  const context = { actor, signal, client };
  const about = withoutUndefined({
    tool: call.id,
    hash: capabilityHash({ kind, text, ...rest }),
    call: call.callId,
    within: call.run,
  });
  const via = isForeign ? kind : "capability";
  // A nested run does not count again among the waiting runs.
  const waiting = call.run === undefined ? parts.waiting : undefined;
  const runParts = { ...parts, callTool, waiting };
  if (kind === "plan") {
    const plan = parseExact(text);
    const plans = new Plans(runParts);
    const outcome = await plans.run({ ...context, plan, params: call.arguments, via, depth });
    const { run, isDone, output } = outcome;
    parts.journal.record("capability ended", { actor, about: { ...about, run, isDone } });
    return isDone ? valueResult(output) : failedPlanResult(outcome);
  }
  const { codeMs: ms, callMaxMs: mostMs } = parts.policy.config.limits;
  const result = await withRun(
    { ...context, via, id, depth, maxCalls: calls, ms, totalMs: mostMs, about },
    runParts,
    async (run) =>
      await runCode({ code: text, arguments: call.arguments, run, capabilityCall: call }, parts),
  );
  if (result.kind === "value") return valueResult(result.value);
  return errorResult(failureText(result.failure));
}

/** Returns the states of the tasks of a failed plan, which cannot be resumed. */
function failedPlanResult({ result: { content } }: PlanOutcome): ToolResult {
  const json: JsonObject = parseExact(String(content[0]?.text));
  const { failed = {}, not_run: notRun = {}, may_have_run } = json;
  return errorResult(JSON.stringify({ failed, not_run: notRun, may_have_run }));
}

function errorResult(text: string): ToolResult {
  return { ...textResult(text), isError: true };
}

/** Returns a value as the result of a tool. */
export function valueResult(value: Json): ToolResult {
  return {
    ...textResult(typeof value === "string" ? value : JSON.stringify(value)),
    ...(isObject(value) && { structuredContent: value }),
  };
}
