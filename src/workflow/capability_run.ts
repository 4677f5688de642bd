/**
 * Runs what was saved as a capability: code or a plan, with the arguments of a call.
 *
 * @module
 */

import type { Call, CallTool, ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { type Capability, capabilityHash } from "./capability.ts";
import { type CodeHouse, runCode } from "./code.ts";
import { inRun, type RunHouse } from "./run_scope.ts";
import { WaitingRuns } from "./waiting_runs.ts";

/** What capabilities need of PML. */
export interface CapabilityHouse extends CodeHouse, RunHouse {
  readonly limits: () => { readonly codeMs: number; readonly callMaxMs: number };
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
  { call, id, depth, calls, callTool }: CapabilityCall,
  house: CapabilityHouse,
): Promise<ToolResult> {
  const { kind, text } = capability;
  if (kind !== "code") throw new PmlError("BUG", "Cannot run a plan yet");
  const { codeMs: ms, callMaxMs: mostMs } = house.limits();
  const { actor, signal, request, onProgress, onMessage, onAsk, onQuestion, run: within } = call;
  const about: JsonObject = {
    tool: call.id,
    hash: capabilityHash(capability),
    call: call.callId,
    ...(within !== undefined && { within }),
  };
  const start = {
    ...{ actor, signal, request, onProgress, onMessage, onAsk, onQuestion },
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
