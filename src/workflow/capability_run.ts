/**
 * Runs what was saved as a capability: code or a plan, with the arguments of a call.
 *
 * @module
 */

import type { Call, CallTool, ToolResult } from "../core/call.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { type Capability, capabilityHash } from "./capability.ts";
import { type CodeHouse, runCode } from "./code.ts";
import { inRun, type RunHouse } from "./run_scope.ts";
import type { PlanOutcome, Plans } from "./plans.ts";
import { WaitingRuns } from "./waiting_runs.ts";

/** What capabilities need of PML. */
export interface CapabilityHouse extends CodeHouse, RunHouse {
  readonly limits: () => { readonly codeMs: number; readonly callMaxMs: number };
  /** Returns what runs plans, with calls that go this way. */
  readonly plans: (callTool: CallTool) => Pick<Plans, "run">;
}

/** A capability that is called. */
export interface CapabilityCall {
  readonly call: Call;
  /** The id of the run. */
  readonly id: string;
  readonly depth: number;
  /** How many calls it may make. */
  readonly calls: number;
  /** Makes its calls. */
  readonly callTool: CallTool;
}

/** Who is inside another run waits with that, and does not count again. */
const UNCOUNTED = new WaitingRuns(() => Infinity);

/** Runs a capability. */
export async function runCapability(
  capability: Capability,
  called: CapabilityCall,
  house: CapabilityHouse,
): Promise<ToolResult> {
  return capability.kind === "code"
    ? await runSavedCode(capability, called, house)
    : await runSavedPlan(capability, called, house);
}

async function runSavedPlan(
  capability: Capability,
  { call, depth, callTool }: CapabilityCall,
  house: CapabilityHouse,
): Promise<ToolResult> {
  const { actor, signal, request, onProgress, onMessage, onAsk, onQuestion, sampling } = call;
  const outcome = await house.plans(callTool).run({
    ...{ actor, signal, request, onProgress, onMessage, onAsk, onQuestion, sampling },
    plan: JSON.parse(capability.text),
    params: call.arguments,
    via: "capability",
    depth,
  });
  const { run, isDone, output } = outcome;
  const about = { ...aboutOf(capability, call), run, isDone };
  house.record("capability ended", { actor: call.actor, about });
  return isDone ? resultOf(output) : unfinished(outcome);
}

/** Says which tasks of a plan failed. What is done of it cannot be resumed. */
function unfinished({ result: { content } }: PlanOutcome): ToolResult {
  const said: JsonObject = JSON.parse(String(content[0]?.text));
  const { failed = {}, not_run: left = {} } = said;
  return {
    content: [{ type: "text", text: JSON.stringify({ failed, not_run: left }) }],
    isError: true,
  };
}

function aboutOf(capability: Capability, { id, callId, run: within }: Call): JsonObject {
  const about = { tool: id, hash: capabilityHash(capability), call: callId };
  return within === undefined ? about : { ...about, within };
}

async function runSavedCode(
  capability: Capability,
  { call, id, depth, calls, callTool }: CapabilityCall,
  house: CapabilityHouse,
): Promise<ToolResult> {
  const { text } = capability;
  const { codeMs: ms, callMaxMs: mostMs } = house.limits();
  const { actor, signal, request, onProgress, onMessage, onAsk, onQuestion, sampling } = call;
  const { run: within } = call;
  const about = aboutOf(capability, call);
  const start = {
    ...{ actor, signal, request, onProgress, onMessage, onAsk, onQuestion, sampling },
    ...{ via: "capability", id, depth, calls, ms, mostMs, about } as const,
  };
  const waiting = within === undefined ? house.waiting : UNCOUNTED;
  const result = await inRun(
    start,
    { ...house, callTool, waiting },
    async (run) => await runCode({ code: text, arguments: call.arguments, run }, house),
  );
  if (result.kind === "value") return resultOf(result.value);
  const { name, message, code, hint, line } = result.failure;
  const place = line === undefined ? "" : ` (line ${line})`;
  const said = `${code ?? name}: ${message}${place}`;
  return {
    content: [{ type: "text", text: hint === undefined ? said : `${said}\n${hint}` }],
    isError: true,
  };
}

/** Returns a value as the result of a tool. */
export function resultOf(value: Json): ToolResult {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return {
    content: [{ type: "text", text }],
    ...(isObject(value) && { structuredContent: value }),
  };
}
