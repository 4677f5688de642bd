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
import {
  type FilledArguments,
  fillLiterals,
  type OpenArgument,
  referenceFor,
} from "./_filled_arguments.ts";
import {
  areAllWordsExplained,
  countOtherWords,
  hasLimitingWord,
  hasMisplacedValue,
  mainWord,
  mainWordFit,
} from "./_step_fit.ts";
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
  recordHits?(query: string, tools: readonly ToolId[]): void;
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
   * The required arguments without known values, and the optional arguments to which a text of the
   * intent may belong.
   */
  readonly open: readonly (OpenArgument & { readonly task: string })[];
  /** Alternative tools by task. */
  readonly alternatives: Readonly<Record<string, readonly ToolId[]>>;
  /** The steps without a matching tool. */
  readonly unmet: readonly string[];
  /** The tools that a search for the whole intent found. */
  readonly hits: readonly SearchHit[];
}

const INTENT_LENGTH_MAX = 32_768;
/** The maximum number of tasks of a plan. Further steps are unmet, so such a plan does not run. */
const TASKS_MAX = 12;
/** The maximum number of tools that are ranked for one step. */
const RANKED_MAX = 8;
/** The weights of the search for the whole intent, and of used literals. A step's search has 1. */
const CONTEXT_WEIGHT = 0.2;
const LITERALS_WEIGHT = 0.2;
/** Added to the rank of a tool whose name or description contains the main word of a step. */
const MAIN_WORD_GAIN = { name: 0.3, description: 0.1, none: 0 } as const;
/** Subtracted from the rank of a tool for each word of its name that a step does not contain. */
const OTHER_WORD_LOSS = 0.05;
/** The maximum confidence in a tool that does only a part of a step. */
const PARTIAL_CONFIDENCE = 0.5;
/** About the maximum number of tools that a plan and its alternatives contain together. */
const TOOLS_SHOWN = 10;
/** If a tool followed another tool in at least this share of calls, the plan calls it later. */
const USUAL_SHARE_MIN = 0.5;
/** If a tool followed the tool of a task in at least this share of calls, it is an alternative. */
const OFTEN_SHARE_MIN = 0.25;

/** Names of arguments that usually have the same value in all tasks of a sentence. */
const SHARED_NAMES = /repo|project|workspace|owner|org(?:$|_|ani)|database|branch|channel|account/i;

/** A task before it is ordered. */
interface TaskDraft {
  readonly hit: SearchHit;
  readonly filled: FilledArguments;
  /** The other tools that were found for the step, the best first. */
  readonly others: readonly SearchHit[];
  /** The confidence that its tool and its arguments match the step, from 0 to 1. */
  readonly confidence: number;
  /** The JSON Schema of the tool's output; undefined if it is unknown. */
  readonly output: JsonObject | undefined;
}

/** Creates a plan. It has no task if no tool matches. Throws if the intent is too long. */
export async function planIntent(intent: string, tools: IntentTools): Promise<IntentPlan> {
  // guard: intent-size
  if (intent.length > INTENT_LENGTH_MAX) {
    throw new PmlError(
      "INPUT_TOO_LARGE",
      `Cannot plan: the intent has ${intent.length} characters`,
      {
        hint: `Shorten it to at most ${INTENT_LENGTH_MAX} characters, or send a plan`,
      },
    );
  }
  const all = intentSteps(intent);
  const steps = all.slice(0, TASKS_MAX);
  const wholeSearch = await tools.search(steps.map(({ query }) => query).join(", "));
  const context = new Map(wholeSearch.hits.map(({ id, score }) => [id, score]));
  const drafts = await Promise.all(steps.map((step) => createDraft(step, tools, context)));
  const tasks = drafts.filter((draft) => draft !== undefined);
  const unmet = all.filter((_, at) => drafts[at] === undefined).map(({ text }) => text);
  const plan = buildPlan(orderDrafts(tasks, tools), tools, unmet);
  // Limiting words such as "if so" may be outside of all steps, so the whole intent is searched,
  // too.
  const confidence = hasLimitingWord(intent)
    ? Math.min(plan.confidence, PARTIAL_CONFIDENCE)
    : plan.confidence;
  return { ...plan, confidence, hits: wholeSearch.hits };
}

async function createDraft(
  step: IntentStep,
  tools: IntentTools,
  context: ReadonlyMap<ToolId, number>,
): Promise<TaskDraft | undefined> {
  const { hits, isLoose } = await tools.search(step.query);
  const word = mainWord(step.text);
  const ranked = hits.slice(0, RANKED_MAX).map((hit, position) => {
    const fit = fillLiterals(hit.tool, step);
    const main = word === undefined ? "none" : mainWordFit(word, hit.tool);
    const literals = fit.usedCount / Math.max(step.literals.length, 1);
    const rank = hit.score + CONTEXT_WEIGHT * (context.get(hit.id) ?? 0) +
      LITERALS_WEIGHT * literals +
      MAIN_WORD_GAIN[main] - OTHER_WORD_LOSS * countOtherWords(hit.tool, step.query);
    // Among equal ranks, the order of the search decides.
    return { hit, fit, main, rank: rank - position * 1e-9 };
  }).sort((one, other) => other.rank - one.rank);
  // A server from an offer was never used, so its tools are only alternatives.
  const best = ranked.find(({ hit }) => hit.server.isOffer !== true);
  if (best === undefined) return undefined;
  const { fit, main } = best;
  const lacksMainWord = word !== undefined && main === "none";
  const isOffered = ranked.some(({ hit }) => hit.server.isOffer === true);
  // A tool with open arguments that no literal fills was found by chance if it lacks the main word,
  // or if the step has literals.
  const isAccidental = fit.usedCount === 0 && fit.openArguments.length > 0 &&
    (lacksMainWord || fit.unusedCount > 0);
  if (isAccidental && !isOffered) return undefined;
  const isNamedElsewhere = main !== "name" && ranked.some(({ main }) => main === "name");
  const isPartial = lacksMainWord || isNamedElsewhere || fit.unusedCount > 0 ||
    hasLimitingWord(step.text) ||
    hasMisplacedValue(step, fit.arguments) || !areAllWordsExplained(step, best.hit, fit.arguments);
  const others = ranked.filter((candidate) => candidate !== best);
  tools.recordHits?.(step.query, ranked.map(({ hit }) => hit.id));
  const rival = others.find(({ hit }) => hit.server.name !== best.hit.server.name);
  const isToolNamed = termsOf(best.hit.id).some((term) => termsOf(step.query).includes(term));
  return {
    ...{ hit: best.hit, filled: best.fit, others: others.map(({ hit }) => hit) },
    confidence: Math.min(isPartial ? PARTIAL_CONFIDENCE : 1, isLoose ? 0.5 : 1) *
      (isToolNamed ? 1 : 0.7) *
      (fit.isGuess ? 0.7 : 1) * clarity((rival?.rank ?? 0) / best.rank),
    output: tools.output(best.hit.id, best.hit.tool),
  };
}

/**
 * Returns how clearly the chosen tool is better than the tools of other servers: from 1 to 0.5.
 * `rivalShare` is the best rank of these tools, divided by the rank of the chosen tool.
 */
function clarity(rivalShare: number): number {
  return 1 - Math.min(0.5, Math.max(0, (rivalShare - 0.8) * 2.5));
}

/** Orders each task after the tasks whose outputs it needs, or that it usually follows. */
function orderDrafts(drafts: readonly TaskDraft[], tools: IntentTools): readonly TaskDraft[] {
  const precedes = (one: TaskDraft, other: TaskDraft) => {
    const feeds = other.filled.openArguments.some((open) =>
      referenceFor(open, [{ id: "", output: one.output ?? {} }]) !== undefined
    );
    return feeds || (tools.next(one.hit.id).get(other.hit.id) ?? 0) >= USUAL_SHARE_MIN;
  };
  const ordered: TaskDraft[] = [];
  for (const draft of drafts) {
    const at = ordered.findIndex((other) => precedes(draft, other) && !precedes(other, draft));
    ordered.splice(at < 0 ? ordered.length : at, 0, draft);
  }
  return ordered;
}

function buildPlan(
  drafts: readonly TaskDraft[],
  tools: IntentTools,
  unmet: readonly string[],
): Omit<IntentPlan, "hits"> {
  const alternativesMax = Math.min(4, Math.max(2, Math.ceil(TOOLS_SHOWN / drafts.length) - 1));
  const tasks: PlannedTask[] = [];
  const open: (OpenArgument & { readonly task: string })[] = [];
  let confidence = drafts.length === 0 ? 0 : unmet.length > 0 ? PARTIAL_CONFIDENCE : 1;
  drafts.forEach((draft, at) => {
    const id = `t${at + 1}`;
    const sources = drafts.slice(0, at).map(({ output }, from) => ({ id: `t${from + 1}`, output }));
    const args: Record<string, Json> = { ...draft.filled.arguments };
    let { confidence: taskConfidence } = draft;
    for (const openArgument of draft.filled.openArguments) {
      const reference = referenceFor(openArgument, sources) ??
        sharedValue(openArgument, draft, drafts);
      if (reference === undefined) open.push({ task: id, ...openArgument });
      else args[openArgument.argument] = reference.value;
      if (reference === undefined || reference.isGuess) taskConfidence *= 0.7;
    }
    confidence = Math.min(confidence, taskConfidence);
    const previous = drafts[at - 1];
    // Only tasks that change nothing can run at the same time.
    const isAfter = previous !== undefined && !(onlyReads(previous) && onlyReads(draft));
    tasks.push({
      id,
      tool: shownId(draft.hit),
      arguments: args,
      ...(isAfter && { depends_on: [`t${at}`] }),
    });
  });
  const used = new Set(tasks.map(({ tool }) => tool));
  const alternatives = Object.fromEntries(drafts.map(({ hit, others }, at) => {
    const often = [...tools.next(hit.id)].filter(([id, part]) =>
      part >= OFTEN_SHARE_MIN && !used.has(id)
    );
    const all = [...others.slice(0, alternativesMax).map(shownId), ...often.map(([id]) => id)];
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
 * Returns the value of an open argument in another task of the same server: "show the status and
 * the log of /work/app" contains the folder only once.
 */
function sharedValue(
  { argument, type }: OpenArgument,
  { hit: { server } }: TaskDraft,
  drafts: readonly TaskDraft[],
): { readonly value: Json; readonly isGuess: boolean } | undefined {
  if (type !== "string" || !SHARED_NAMES.test(argument)) return undefined;
  const other = drafts.find(({ hit, filled }) =>
    hit.server.name === server.name && Object.hasOwn(filled.arguments, argument)
  );
  const value = other?.filled.arguments[argument];
  return value === undefined ? undefined : { value, isGuess: true };
}

function onlyReads({ hit }: TaskDraft): boolean {
  return hit.tool.annotations?.readOnlyHint === true;
}
