/**
 * Answers intents: with the result of the plan that was made, if nothing of it is in doubt, else
 * with the plan itself, which the model completes and sends back.
 *
 * @module
 */

import type { Call, Outcome } from "../protocol/call.ts";
import { textResult } from "../protocol/call.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { type IntentOptions, type PlannedTask, planOf } from "./intent.ts";

/** The options of `answerIntent`. */
export interface IntentsOptions {
  /** Opens what a plan is made with, for one caller. */
  readonly open: (caller: Pick<Call, "actor" | "client">) => Promise<IntentOptions>;
  /** Returns the confidence above which a plan may run at once. */
  readonly confidence: () => number;
  /** Returns whether a call runs without a question. `open` names arguments that come later. */
  readonly runs: (call: PlannedCall, open: ReadonlySet<string>) => Promise<boolean>;
}

/** A call that a plan would make. */
export interface PlannedCall extends Pick<Call, "actor" | "client"> {
  readonly signal: AbortSignal;
  readonly tool: ToolId;
  readonly arguments: JsonObject;
}

/** An intent of one caller. */
export interface IntentRequest extends Pick<Call, "actor" | "client"> {
  readonly intent: string;
  readonly signal: AbortSignal;
  /** Runs the plan. */
  readonly run: (plan: JsonObject) => Promise<Outcome>;
}

const HINT = "Not run. Check it, fill what is open, and send it as `plan`";

/** Makes a plan and runs it, or answers with the plan. */
export async function answerIntent(
  request: IntentRequest,
  { open: opened, confidence: least, runs }: IntentsOptions,
): Promise<Outcome> {
  const { intent, actor, signal, client, run } = request;
  const caller = { actor, signal, client };
  const made = await planOf(intent, await opened(request));
  const { plan, confidence, open, alternatives, unmet } = made;
  const isSure = open.length === 0 && confidence > least();
  if (isSure && await mayRun(plan.tasks, (call, left) => runs({ ...call, ...caller }, left))) {
    // A plan is plain JSON.
    const outcome = await run(plan as unknown as JsonObject);
    if (outcome.kind === "ask") return outcome;
    const { content, ...rest } = outcome.result;
    const said = { type: "text", text: JSON.stringify({ plan, confidence }) };
    return { ...outcome, result: { ...rest, content: [...content, said] } };
  }
  const answer = {
    ...{ plan, confidence },
    ...(open.length > 0 && { open }),
    alternatives,
    ...(unmet.length > 0 && { unmet }),
    hint: HINT,
  };
  return { kind: "result", result: textResult(JSON.stringify(answer)) };
}

async function mayRun(
  tasks: readonly PlannedTask[],
  runs: (
    call: Pick<PlannedCall, "tool" | "arguments">,
    open: ReadonlySet<string>,
  ) => Promise<boolean>,
): Promise<boolean> {
  const each = await Promise.all(tasks.map(async ({ tool, arguments: args }) => {
    const entries = Object.entries(args);
    const isRef = (value: unknown) =>
      typeof value === "object" && value !== null &&
      Object.hasOwn(value, "$ref");
    const later = entries.filter(([, value]) => isRef(value)).map(([name]) => name);
    const known = Object.fromEntries(entries.filter(([name]) => !later.includes(name)));
    return await runs({ tool, arguments: known }, new Set(later));
  }));
  // guard: intent-allowed
  return each.every(Boolean);
}
