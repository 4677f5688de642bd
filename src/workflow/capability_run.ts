/**
 * Runs what was saved as a capability: code or a plan, with the arguments of a call.
 *
 * @module
 */

import { type CallTool, textResult, type ToolResult } from "../protocol/call.ts";
import { defined, isObject, type Json, type JsonObject } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import type { CheckedCall } from "../servers/server.ts";
import { type Capability, capabilityHash } from "../servers/capability/capability.ts";
import { type CodeHouse, runCode } from "./code.ts";
import { textOf } from "./code_tool.ts";
import { inRun, type RunHouse } from "./run_scope.ts";
import type { PlanOutcome, Plans } from "./plans.ts";
import { WaitingRuns } from "./waiting_runs.ts";

/** What capabilities need of PML. */
export interface CapabilityHouse extends CodeHouse, RunHouse {
  readonly limits: () => { readonly codeMs: number; readonly callMaxMs: number };
  /** Returns what runs plans, with calls and questions that go this way. */
  readonly plans: (own: Pick<RunHouse, "callTool" | "waiting">) => Pick<Plans, "run">;
}

/** A capability that is called. */
export interface CapabilityCall {
  readonly call: CheckedCall;
  /** The id of the run. */
  readonly id: string;
  readonly depth: number;
  /** Whether a registry has it. Internal tools are for what the person saved alone. */
  readonly isForeign: boolean;
  /** How many calls it may make. */
  readonly calls: number;
  /** Makes its calls. */
  readonly callTool: CallTool;
}

/** Who is inside another run waits with that, and does not count again. */
const UNCOUNTED = new WaitingRuns(() => Infinity);

/** Runs a capability. */
export async function runCapability(
  { kind, text, ...rest }: Capability,
  { call, id, depth, isForeign, calls, callTool }: CapabilityCall,
  house: CapabilityHouse,
): Promise<ToolResult> {
  const { actor, cancellation: { signal }, client, assertCurrent } = call;
  const given = { actor, signal, client };
  const about = defined({
    tool: call.id,
    hash: capabilityHash({ kind, text, ...rest }),
    call: call.callId,
    within: call.run,
  });
  const via = isForeign ? kind : "capability";
  const own = { callTool, waiting: call.run === undefined ? house.waiting : UNCOUNTED };
  if (kind === "plan") {
    const plan = parseExact(text);
    const outcome = await house.plans(own)
      .run({ ...given, plan, params: call.arguments, via, depth });
    const { run, isDone, output } = outcome;
    house.record("capability ended", { actor, about: { ...about, run, isDone } });
    return isDone ? resultOf(output) : unfinished(outcome);
  }
  const { codeMs: ms, callMaxMs: mostMs } = house.limits();
  const result = await inRun(
    { ...given, via, id, depth, calls, ms, mostMs, about },
    { ...house, ...own },
    async (run) =>
      await runCode({ code: text, arguments: call.arguments, run, assertCurrent }, house),
  );
  if (result.kind === "value") return resultOf(result.value);
  return failed(textOf(result.failure));
}

/** Says which tasks of a plan failed. What is done of it cannot be resumed. */
function unfinished({ result: { content } }: PlanOutcome): ToolResult {
  const said: JsonObject = parseExact(String(content[0]?.text));
  const { failed: wrong = {}, not_run: left = {}, may_have_run } = said;
  return failed(JSON.stringify({ failed: wrong, not_run: left, may_have_run }));
}

function failed(text: string): ToolResult {
  return { ...textResult(text), isError: true };
}

/** Returns a value as the result of a tool. */
export function resultOf(value: Json): ToolResult {
  return {
    ...textResult(typeof value === "string" ? value : JSON.stringify(value)),
    ...(isObject(value) && { structuredContent: value }),
  };
}
