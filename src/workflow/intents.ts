/**
 * Answers intents: with the result of the created plan if the plan is complete and confident, else
 * with the plan itself, which the model completes and sends back.
 *
 * @module
 */

import { type Call, type Outcome, textResult } from "../protocol/call.ts";
import type { JsonObject } from "../core/json.ts";
import { shownId, type ToolId } from "../core/tool_id.ts";
import type { SearchHit } from "../search/search.ts";
import { signatureOf } from "../search/signature.ts";
import { intentPlan, type IntentTools, type PlannedTask } from "./intent.ts";

/** The parts of PML that intents need. */
export interface IntentHost {
  /** The confidence above which a plan may run immediately. */
  readonly confidence: number;
  /** Whether clients see a tool that searches. Otherwise an intent that does not fit finds tools. */
  readonly hasSearch: boolean;
  /** Opens the information about tools for one caller. */
  open(caller: Pick<Call, "actor" | "client">): Promise<IntentTools>;
  /** Returns whether a call runs without approval. `open` names its unknown arguments. */
  runs(call: PlannedCall, open: ReadonlySet<string>): Promise<boolean>;
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
}

/** The outcome of an intent: a plan to run now, or an answer that shows the plan. */
export type AnsweredIntent =
  | { readonly kind: "run"; readonly plan: JsonObject; readonly confidence: number }
  | { readonly kind: "shown"; readonly outcome: Outcome };

const HINT = "Not run. Check the plan, fill its open arguments, and send it as `plan`";
const NOTHING = "Not run: nothing fits. Use other words, or send a plan";
/** The most tools in an answer to an intent that does not fit. */
const FOUND_MAX = 5;

/** Creates a plan. Returns it to run if it is complete and confident, else an answer with it. */
export async function answerIntent(
  request: IntentRequest,
  host: IntentHost,
): Promise<AnsweredIntent> {
  const { intent, actor, signal, client } = request;
  const made = await intentPlan(intent, await host.open(request));
  const { plan, confidence, open, alternatives, unmet, hits } = made;
  const isSure = plan.tasks.length > 0 && open.length === 0 && confidence > host.confidence;
  if (isSure && await mayRun(plan.tasks, { actor, signal, client }, host)) {
    // A plan is plain JSON.
    return { kind: "run", plan: plan as unknown as JsonObject, confidence };
  }
  const tools = host.hasSearch || confidence > host.confidence ? [] : hits.slice(0, FOUND_MAX);
  const answer = {
    plan,
    confidence,
    ...(open.length > 0 && { open }),
    alternatives,
    ...(unmet.length > 0 && { unmet }),
    ...(tools.length > 0 && { tools: tools.map(toolLine) }),
    hint: plan.tasks.length > 0 ? HINT : NOTHING,
  };
  return { kind: "shown", outcome: { kind: "result", result: textResult(JSON.stringify(answer)) } };
}

function toolLine(hit: SearchHit): string {
  return `${shownId(hit)}${signatureOf(hit.tool)}`;
}

/** Adds the plan to the outcome of its run. */
export function withPlan(
  outcome: Outcome,
  { plan, confidence }: Pick<AnsweredIntent & { readonly kind: "run" }, "plan" | "confidence">,
): Outcome {
  if (outcome.kind === "ask") return outcome;
  const { content, ...rest } = outcome.result;
  const block = { type: "text", text: JSON.stringify({ plan, confidence }) };
  return { ...outcome, result: { ...rest, content: [...content, block] } };
}

async function mayRun(
  tasks: readonly PlannedTask[],
  caller: Pick<PlannedCall, "actor" | "signal" | "client">,
  host: IntentHost,
): Promise<boolean> {
  const each = await Promise.all(tasks.map(async ({ tool, arguments: args }) => {
    const entries = Object.entries(args);
    const isRef = (value: unknown) =>
      typeof value === "object" && value !== null &&
      Object.hasOwn(value, "$ref");
    const later = entries.filter(([, value]) => isRef(value)).map(([name]) => name);
    const values = Object.fromEntries(entries.filter(([name]) => !later.includes(name)));
    return await host.runs({ tool, arguments: values, ...caller }, new Set(later));
  }));
  // guard: intent-allowed
  return each.every(Boolean);
}
