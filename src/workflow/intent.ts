/**
 * Creates a plan from an intent: finds a tool for each step, orders the tasks and fills their
 * arguments. It runs nothing.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { shownId, type ToolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { SearchAnswer, SearchHit } from "../search/search.ts";
import { termsOf } from "../search/terms.ts";
import { type Filled, type OpenArgument, referenceFor, withLiterals } from "./_filling.ts";
import { fitOf, isExplained, isLimited, isMisplaced, mainWord, otherWords } from "./_step_fit.ts";
import { type IntentStep, intentSteps } from "./_steps.ts";

/** The sources of information about tools for a plan. */
export interface IntentTools {
  /** Finds tools that may be called. */
  search(query: string): Promise<SearchAnswer>;
  /** Returns the JSON Schema of a tool's output, from its definition or from observed results. */
  output(id: ToolId, tool: ToolDefinition): JsonObject | undefined;
  /** Returns the tools that were called next after a tool, each with its share of these calls. */
  next(id: ToolId): ReadonlyMap<ToolId, number>;
  /** Records the tools that were found for a step. */
  found?(query: string, tools: readonly ToolId[]): void;
}

/** One task of a plan, in the form of `execute_workflow`. */
export interface PlannedTask {
  readonly id: string;
  readonly tool: ToolId;
  readonly arguments: JsonObject;
  readonly depends_on?: readonly string[];
}

/** A plan for an intent. */
export interface IntentPlan {
  readonly plan: { readonly tasks: readonly PlannedTask[] };
  /** The confidence that the plan matches the intent, from 0 to 1. */
  readonly confidence: number;
  /**
   * The required arguments without known values, and optional ones that a text of the intent may
   * belong to.
   */
  readonly open: readonly (OpenArgument & { readonly task: string })[];
  /** Alternative tools by task. */
  readonly alternatives: Readonly<Record<string, readonly ToolId[]>>;
  /** The steps without a matching tool. */
  readonly unmet: readonly string[];
  /** The tools that a search for the whole intent finds. */
  readonly hits: readonly SearchHit[];
}

const LONGEST = 32_768;
/** The maximum number of tasks of a plan. Further steps are unmet, so such a plan does not run. */
const TASKS_MAX = 12;
/** The maximum number of tools that are ranked for one step. */
const LOOKED_AT = 8;
/** The weight of the whole intent, the literals and the open arguments; a step's words have 1. */
const CONTEXT = 0.2;
const LITERALS = 0.2;
/** The gain of a tool if its name, or its description, contains the main word of a step. */
const MAIN_WORD = { name: 0.3, description: 0.1, none: 0 } as const;
/** The loss of a tool for each word of its name that a step does not contain. */
const OTHER_WORD = 0.05;
/** The most confidence in a tool that does not do all that a step contains. */
const PARTIAL = 0.5;
/** The maximum number of tools that a plan with few tasks names in all. */
const NAMED = 10;
/** The share of uses from which one tool is assumed to follow another. */
const USUALLY = 0.5;
/** The share of uses from which a tool that was called next is an alternative. */
const OFTEN = 0.25;

/** Names of arguments that the tasks of a sentence share. A file to write is none of them. */
const SHARED = /repo|project|workspace|owner|org(?:$|_|ani)|database|branch|channel|account/i;

/** A task before it is ordered. */
interface TaskDraft {
  readonly hit: SearchHit;
  readonly filled: Filled;
  readonly others: readonly SearchHit[];
  /** The confidence in its tool. */
  readonly sure: number;
  readonly output: JsonObject | undefined;
}

/** Creates a plan; without a task if nothing fits. Throws if the intent is too long. */
export async function intentPlan(intent: string, tools: IntentTools): Promise<IntentPlan> {
  // guard: intent-size
  if (intent.length > LONGEST) {
    throw new PmlError(
      "INPUT_TOO_LARGE",
      `Cannot plan: the intent has ${intent.length} characters`,
      {
        hint: `Shorten it to at most ${LONGEST} characters, or send a plan`,
      },
    );
  }
  const all = intentSteps(intent);
  const steps = all.slice(0, TASKS_MAX);
  const whole = await tools.search(steps.map(({ query }) => query).join(", "));
  const context = new Map(whole.hits.map(({ id, score }) => [id, score]));
  const drafts = await Promise.all(steps.map((step) => draftOf(step, tools, context)));
  const tasks = drafts.filter((draft) => draft !== undefined);
  const unmet = all.filter((_, at) => drafts[at] === undefined).map(({ text }) => text);
  const made = planned(inOrder(tasks, tools), tools, unmet);
  // Parts such as "if so" are no steps.
  const confidence = isLimited(intent) ? Math.min(made.confidence, PARTIAL) : made.confidence;
  return { ...made, confidence, hits: whole.hits };
}

async function draftOf(
  step: IntentStep,
  tools: IntentTools,
  context: ReadonlyMap<ToolId, number>,
): Promise<TaskDraft | undefined> {
  const { hits, isLoose } = await tools.search(step.query);
  const word = mainWord(step.text);
  const ranked = hits.slice(0, LOOKED_AT).map((hit, at) => {
    const fit = withLiterals(hit.tool, step);
    const main = word === undefined ? "none" : fitOf(word, hit.tool);
    const literals = fit.used / Math.max(step.literals.length, 1);
    const worth = hit.score + CONTEXT * (context.get(hit.id) ?? 0) + LITERALS * literals +
      MAIN_WORD[main] - OTHER_WORD * otherWords(hit.tool, step.query);
    return { hit, fit, main, worth: worth - at * 1e-9 };
  }).sort((one, other) => other.worth - one.worth);
  // The server of an offer was never used, so its tools are only alternatives.
  const best = ranked.find(({ hit }) => hit.server.isOffer !== true);
  if (best === undefined) return undefined;
  const { fit, main } = best;
  const isOther = word !== undefined && main === "none";
  const isOffered = ranked.some(({ hit }) => hit.server.isOffer === true);
  // A tool without the main word and without a place for the literals is there by chance.
  const isChance = fit.used === 0 && fit.open.length > 0 && (isOther || fit.unused > 0);
  if (isChance && !isOffered) return undefined;
  const isNamedElsewhere = main !== "name" && ranked.some((one) => one.main === "name");
  const isPartial = isOther || isNamedElsewhere || fit.unused > 0 || isLimited(step.text) ||
    isMisplaced(step, fit.arguments) || !isExplained(step, best.hit, fit.arguments);
  const others = ranked.filter((one) => one !== best);
  tools.found?.(step.query, ranked.map(({ hit }) => hit.id));
  const rival = others.find(({ hit }) => hit.server.name !== best.hit.server.name);
  const isNamed = termsOf(best.hit.id).some((term) => termsOf(step.query).includes(term));
  return {
    ...{ hit: best.hit, filled: best.fit, others: others.map(({ hit }) => hit) },
    sure: Math.min(isPartial ? PARTIAL : 1, isLoose ? 0.5 : 1) * (isNamed ? 1 : 0.7) *
      (fit.isGuess ? 0.7 : 1) * clear((rival?.worth ?? 0) / best.worth),
    output: tools.output(best.hit.id, best.hit.tool),
  };
}

/** Returns 1 if another server's tool scores clearly lower, down to 0.5 if it scores equally. */
function clear(rival: number): number {
  return 1 - Math.min(0.5, Math.max(0, (rival - 0.8) * 2.5));
}

/** Orders each task after those whose outputs it needs, or that it usually follows. */
function inOrder(drafts: readonly TaskDraft[], tools: IntentTools): readonly TaskDraft[] {
  const precedes = (one: TaskDraft, other: TaskDraft) => {
    const feeds = other.filled.open.some((open) =>
      referenceFor(open, [{ id: "", output: one.output ?? {} }]) !== undefined
    );
    return feeds || (tools.next(one.hit.id).get(other.hit.id) ?? 0) >= USUALLY;
  };
  const ordered: TaskDraft[] = [];
  for (const draft of drafts) {
    const at = ordered.findIndex((other) => precedes(draft, other) && !precedes(other, draft));
    ordered.splice(at < 0 ? ordered.length : at, 0, draft);
  }
  return ordered;
}

function planned(
  drafts: readonly TaskDraft[],
  tools: IntentTools,
  unmet: readonly string[],
): Omit<IntentPlan, "hits"> {
  const most = Math.min(4, Math.max(2, Math.ceil(NAMED / drafts.length) - 1));
  const tasks: PlannedTask[] = [];
  const open: (OpenArgument & { readonly task: string })[] = [];
  let confidence = drafts.length === 0 ? 0 : unmet.length > 0 ? PARTIAL : 1;
  drafts.forEach((draft, at) => {
    const id = `t${at + 1}`;
    const sources = drafts.slice(0, at).map(({ output }, from) => ({ id: `t${from + 1}`, output }));
    const args: Record<string, Json> = { ...draft.filled.arguments };
    let { sure } = draft;
    for (const one of draft.filled.open) {
      const reference = referenceFor(one, sources) ?? sharedValue(one, draft, drafts);
      if (reference === undefined) open.push({ task: id, ...one });
      else args[one.argument] = reference.value;
      if (reference === undefined || reference.isGuess) sure *= 0.7;
    }
    confidence = Math.min(confidence, sure);
    const before = drafts[at - 1];
    // Only tasks that change nothing can run at the same time.
    const isAfter = before !== undefined && !(onlyReads(before) && onlyReads(draft));
    tasks.push({
      id,
      tool: shownId(draft.hit),
      arguments: args,
      ...(isAfter && { depends_on: [`t${at}`] }),
    });
  });
  const used = new Set(tasks.map(({ tool }) => tool));
  const alternatives = Object.fromEntries(drafts.map(({ hit, others }, at) => {
    const often = [...tools.next(hit.id)].filter(([id, part]) => part >= OFTEN && !used.has(id));
    const all = [...others.slice(0, most).map(shownId), ...often.map(([id]) => id)];
    return [`t${at + 1}`, [...new Set(all)]];
  }));
  return {
    ...{
      plan: { tasks },
      confidence: Math.round(confidence * 100) / 100,
      open,
      alternatives,
      unmet,
    },
  };
}

/**
 * Returns the value that another task of the same server has for an open argument: "show the status
 * and the log of /work/app" names the folder once.
 */
function sharedValue(
  { argument, type }: OpenArgument,
  { hit: { server } }: TaskDraft,
  drafts: readonly TaskDraft[],
): { readonly value: Json; readonly isGuess: boolean } | undefined {
  if (type !== "string" || !SHARED.test(argument)) return undefined;
  const near = drafts.find(({ hit, filled }) =>
    hit.server.name === server.name && Object.hasOwn(filled.arguments, argument)
  );
  const value = near?.filled.arguments[argument];
  return value === undefined ? undefined : { value, isGuess: true };
}

function onlyReads({ hit }: TaskDraft): boolean {
  return hit.tool.annotations?.readOnlyHint === true;
}
