/**
 * Compares the plans that PML makes from sentences with plans that were written by hand:
 * `deno task bench:sentences [--half tune|kept] [--show]`.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { canonicalJson, isObject, type Json, type JsonObject } from "../../src/core/json.ts";
import type { Catalog } from "../../src/search/catalog.ts";
import { Search } from "../../src/search/search.ts";
import { WORKFLOW } from "../../src/config/settings.ts";
import { type IntentPlan, planIntent } from "../../src/workflow/intent.ts";
import { catalogOf, readRows } from "../search.ts";

/** A sentence, and its plan written by hand. */
export interface Sentence {
  readonly intent: string;
  /**
   * The tasks in their order. An argument `{"$open": true}` has no value in the sentence, and
   * `{"$from": N}` is the output of task N.
   */
  readonly tasks: readonly { readonly tool: string; readonly arguments: JsonObject }[];
  /** The parts of the sentence that no tool can do. */
  readonly unmet?: readonly string[];
  /** "tune": the sentence may be used to improve plans; "kept": it is only for measuring. */
  readonly half: "tune" | "kept";
}

/** The plan for a sentence, and the result of its comparison. */
export interface SentenceResult {
  readonly sentence: Sentence;
  /** The plan that PML made; without tasks if nothing fits. */
  readonly intentPlan: IntentPlan;
  readonly isRight: boolean;
  /** Whether the plan would run at once, if the rules allow its calls. */
  readonly runs: boolean;
}

/** The figures of a set of sentences. */
export interface SentenceFigures {
  readonly sentences: number;
  readonly right: number;
  /** Plans with the right tools in the right order; arguments are not compared. */
  readonly rightTools: number;
  /** Wrong plans with a confidence above 0.8. */
  readonly wrongAndSure: number;
  /** Wrong plans that would run at once. */
  readonly wrongAndRun: number;
  /** Right plans that would run at once. */
  readonly rightAndRun: number;
}

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
/** The confidence above which a plan counts as sure. */
const SURE = 0.8;

/** Makes and compares a plan for each sentence of a half, or of both halves. */
export async function checkSentences(half?: Sentence["half"]): Promise<readonly SentenceResult[]> {
  const catalog = catalogOf(`${FOLDER}tools.jsonl`);
  const sentences = readRows<Sentence>(`${FOLDER}sentences.jsonl`);
  const chosen = sentences.filter((sentence) => half === undefined || sentence.half === half);
  return await Promise.all(chosen.map((sentence) => checkSentence(sentence, catalog)));
}

/** Returns the figures of compared sentences. */
export function figuresOf(results: readonly SentenceResult[]): SentenceFigures {
  const count = (matches: (result: SentenceResult) => boolean) => results.filter(matches).length;
  return {
    sentences: results.length,
    right: count(({ isRight }) => isRight),
    rightTools: count(({ sentence, intentPlan }) =>
      toolsText(sentence.tasks) === toolsText(intentPlan.plan.tasks)
    ),
    wrongAndSure: count(({ isRight, intentPlan }) => !isRight && intentPlan.confidence > SURE),
    wrongAndRun: count(({ isRight, runs }) => !isRight && runs),
    rightAndRun: count(({ isRight, runs }) => isRight && runs),
  };
}

async function checkSentence(sentence: Sentence, catalog: Catalog): Promise<SentenceResult> {
  const search = new Search(catalog);
  const intentPlan = await planIntent(sentence.intent, {
    search: (query) => search.search(query),
    output: (_, { outputSchema }) => outputSchema,
    next: () => new Map(),
  });
  const runs = intentPlan.plan.tasks.length > 0 && intentPlan.open.length === 0 &&
    intentPlan.confidence > WORKFLOW.confidence.default;
  return { sentence, intentPlan, isRight: isRight(sentence, intentPlan), runs };
}

function isRight({ tasks, unmet = [] }: Sentence, intentPlan: IntentPlan): boolean {
  const planned = intentPlan.plan.tasks;
  if (toolsText(tasks) !== toolsText(planned)) return false;
  if ((unmet.length > 0) !== (intentPlan.unmet.length > 0)) return false;
  return tasks.every(({ arguments: wanted }, at) => {
    const { id = "", arguments: present = {} } = planned[at] ?? {};
    const isOpen = (name: string) =>
      intentPlan.open.some(({ task, argument }) => task === id && argument === name);
    const names = new Set([...Object.keys(wanted), ...Object.keys(present)]);
    return [...names].every((name) => {
      const value = wanted[name];
      if (isObject(value) && value.$open === true) return isOpen(name);
      if (!isObject(value) || typeof value.$from !== "number") return isSame(value, present[name]);
      const { $ref } = Object(present[name]);
      return typeof $ref === "string" && $ref.startsWith(`${planned[value.$from]?.id}#`);
    });
  });
}

function isSame(one: Json | undefined, other: Json | undefined): boolean {
  return one !== undefined && other !== undefined && canonicalJson(one) === canonicalJson(other);
}

function toolsText(tasks: readonly { readonly tool: string }[]): string {
  return tasks.map(({ tool }) => tool).join();
}

async function main(): Promise<void> {
  const { values: { half, show } } = parseArgs({
    options: { half: { type: "string" }, show: { type: "boolean" } },
  });
  const results = await checkSentences(half as Sentence["half"] | undefined);
  for (const { sentence, intentPlan, isRight, runs } of show ? results : []) {
    const mark = isRight ? "right" : runs ? "RUNS WRONG" : "wrong";
    console.log(`${mark} ${intentPlan.confidence ?? "-"} ${sentence.intent}`);
    if (!isRight) {
      const { plan, open, unmet } = intentPlan;
      console.log("   made  ", JSON.stringify({ tasks: plan.tasks, open, unmet }));
      console.log("   wanted", JSON.stringify({ tasks: sentence.tasks, unmet: sentence.unmet }));
    }
  }
  console.log(JSON.stringify(figuresOf(results)));
}

if (import.meta.main) await main();
