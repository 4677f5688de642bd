/**
 * Runs the code or the plan of a capability with the arguments of a call.
 *
 * @module
 */

import { textResult, type ToolResult } from "../protocol/call.ts";
import { defined, isObject, type Json, type JsonObject } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import { type Capability, capabilityHash } from "../servers/capability/capability.ts";
import { type CodeParts, runCode } from "./code.ts";
import { failureText } from "./code_tool.ts";
import { inRun } from "./run_scope.ts";
import { Plans, type PlansParts } from "./plans.ts";
import type { PlanOutcome } from "./_plan_answer.ts";
import type { CapabilityCall } from "./capability_call.ts";

/** The collaborators of capabilities. */
export interface CapabilityParts extends PlansParts, CodeParts {}

/** Runs a capability. */
export async function runCapability(
  { kind, text, ...rest }: Capability,
  { call, id, depth, isForeign, calls, callTool }: CapabilityCall,
  parts: CapabilityParts,
): Promise<ToolResult> {
  const { actor, cancellation: { signal }, client } = call;
  const context = { actor, signal, client };
  const about = defined({
    tool: call.id,
    hash: capabilityHash({ kind, text, ...rest }),
    call: call.callId,
    within: call.run,
  });
  const via = isForeign ? kind : "capability";
  // A nested run does not count again among the waiting runs.
  const waiting = call.run === undefined ? parts.waiting : undefined;
  const own = { ...parts, callTool, waiting };
  if (kind === "plan") {
    const plan = parseExact(text);
    const plans = new Plans(own);
    const outcome = await plans.run({ ...context, plan, params: call.arguments, via, depth });
    const { run, isDone, output } = outcome;
    parts.journal.record("capability ended", { actor, about: { ...about, run, isDone } });
    return isDone ? valueResult(output) : unfinished(outcome);
  }
  const { codeMs: ms, callMaxMs: mostMs } = parts.policy.config.limits;
  const result = await inRun(
    { ...context, via, id, depth, calls, ms, mostMs, about },
    own,
    async (run) =>
      await runCode({ code: text, arguments: call.arguments, run, within: call }, parts),
  );
  if (result.kind === "value") return valueResult(result.value);
  return failed(failureText(result.failure));
}

/** Returns the states of the tasks of a failed plan, which cannot be resumed. */
function unfinished({ result: { content } }: PlanOutcome): ToolResult {
  const json: JsonObject = parseExact(String(content[0]?.text));
  const { failed: wrong = {}, not_run: notRun = {}, may_have_run } = json;
  return failed(JSON.stringify({ failed: wrong, not_run: notRun, may_have_run }));
}

function failed(text: string): ToolResult {
  return { ...textResult(text), isError: true };
}

/** Returns a value as the result of a tool. */
export function valueResult(value: Json): ToolResult {
  return {
    ...textResult(typeof value === "string" ? value : JSON.stringify(value)),
    ...(isObject(value) && { structuredContent: value }),
  };
}
