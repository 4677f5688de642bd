/**
 * Answers intents. If the created plan is complete and confident, the answer is its result.
 * Otherwise the answer is the plan itself, which the model completes and sends back.
 *
 * @module
 */

import { type Call, type Outcome, textResult } from "../protocol/call.ts";
import type { JsonObject } from "../core/json.ts";
import { shownId, type ToolId } from "../core/tool_id.ts";
import type { SearchHit } from "../search/search.ts";
import { signatureOf } from "../search/signature.ts";
import { type IntentTools, planIntent, type PlannedTask } from "./intent.ts";

/** The parts of PML that intents need. */
export interface IntentHost {
  /** The confidence above which a plan may run immediately. */
  readonly requiredConfidence: number;
  /** Whether clients see a search tool. If not, an answer without a confident plan lists tools. */
  readonly hasSearch: boolean;
  /** Returns the information about the tools of one caller. */
  openTools(caller: Pick<Call, "actor" | "client">): Promise<IntentTools>;
  /** Returns whether a call runs without approval. */
  runsWithoutApproval(
    call: PlannedCall,
    unknownArguments: ReadonlySet<string>,
  ): Promise<boolean>;
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
  | { readonly kind: "answered"; readonly outcome: Outcome };

const HINT = "Not run. Check the plan, and send it as `plan`";
const OPEN_HINT = "Not run. Check the plan, fill its open arguments, and send it as `plan`";
const NO_MATCH = "Not run: no tool matches the intent. Use other words, or send a plan";
/** The maximum number of tools in an answer without a confident plan. */
const FOUND_MAX = 5;

/** Creates a plan. Returns the plan to run it if it is complete and confident, else an answer. */
export async function answerIntent(
  request: IntentRequest,
  host: IntentHost,
): Promise<AnsweredIntent> {
  const { intent, actor, signal, client } = request;
  const created = await planIntent(intent, await host.openTools(request));
  const { plan, confidence, open, alternatives, unmet, hits } = created;
  const isSure = plan.tasks.length > 0 && open.length === 0 && confidence > host.requiredConfidence;
  if (isSure && await mayRun(plan.tasks, { actor, signal, client }, host)) {
    // A plan is plain JSON.
    return { kind: "run", plan: plan as unknown as JsonObject, confidence };
  }
  const tools = host.hasSearch || confidence > host.requiredConfidence
    ? []
    : hits.slice(0, FOUND_MAX);
  const answer = {
    plan,
    confidence,
    ...(open.length > 0 && { open }),
    alternatives,
    ...(unmet.length > 0 && { unmet }),
    ...(tools.length > 0 && { tools: tools.map(toolLine) }),
    hint: plan.tasks.length === 0 ? NO_MATCH : open.length > 0 ? OPEN_HINT : HINT,
  };
  return {
    kind: "answered",
    outcome: { kind: "result", result: textResult(JSON.stringify(answer)) },
  };
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
  const areAllowed = await Promise.all(tasks.map(async ({ tool, arguments: args }) => {
    const entries = Object.entries(args);
    const isRef = (value: unknown) =>
      typeof value === "object" && value !== null &&
      Object.hasOwn(value, "$ref");
    const unknownNames = entries.filter(([, value]) => isRef(value)).map(([name]) => name);
    const values = Object.fromEntries(entries.filter(([name]) => !unknownNames.includes(name)));
    return await host.runsWithoutApproval(
      { tool, arguments: values, ...caller },
      new Set(unknownNames),
    );
  }));
  // guard: intent-allowed
  return areAllowed.every(Boolean);
}
