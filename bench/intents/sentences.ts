/**
 * Measures the plans that PML makes from sentences, against plans that a person wrote:
 * `deno task bench:sentences [--half tune|kept] [--show]`.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { canonical, isObject, type Json, type JsonObject } from "../../src/core/json.ts";
import type { Catalog } from "../../src/search/catalog.ts";
import { Search } from "../../src/search/search.ts";
import { WORKFLOW } from "../../src/config/settings.ts";
import { type IntentPlan, intentPlan } from "../../src/workflow/intent.ts";
import { catalogOf, readRows } from "../search.ts";

/** A sentence, and the plan that a person wrote for it. */
export interface Sentence {
  readonly intent: string;
  /**
   * The tasks in their order. An argument `{"$open": true}` has no value in the sentence, and
   * `{"$from": N}` is the output of task N.
   */
  readonly tasks: readonly { readonly tool: string; readonly arguments: JsonObject }[];
  /** The parts of the sentence that no tool can do. */
  readonly unmet?: readonly string[];
  /** Whether the sentence may be used to improve the plans, or only measures them. */
  readonly half: "tune" | "kept";
}

/** The judgement on one plan. */
export interface JudgedSentence {
  readonly sentence: Sentence;
  /** The plan; without a task if nothing fits. */
  readonly made: IntentPlan;
  readonly isRight: boolean;
  /** Whether the plan would run at once, if the rules allow its calls. */
  readonly runs: boolean;
}

/** The figures of a set of sentences. */
export interface SentenceFigures {
  readonly sentences: number;
  readonly right: number;
  /** The right tools in the right order, whatever their arguments are. */
  readonly rightTools: number;
  /** Wrong plans with a confidence above 0.8. */
  readonly wrongAndSure: number;
  /** Wrong plans that would run at once. */
  readonly wrongAndRun: number;
  /** Right plans that would run at once. */
  readonly rightAndRun: number;
}

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
/** A plan with more than this confidence is sure. */
const SURE = 0.8;

/** Makes and judges a plan for each sentence of a half, or of both. */
export async function judgeSentences(half?: Sentence["half"]): Promise<readonly JudgedSentence[]> {
  const catalog = catalogOf(`${FOLDER}tools.jsonl`);
  const sentences = readRows<Sentence>(`${FOLDER}sentences.jsonl`);
  const chosen = sentences.filter((one) => half === undefined || one.half === half);
  return await Promise.all(chosen.map((sentence) => judgeSentence(sentence, catalog)));
}

/** Returns the figures of judged sentences. */
export function figuresOf(judged: readonly JudgedSentence[]): SentenceFigures {
  const count = (is: (one: JudgedSentence) => boolean) => judged.filter(is).length;
  return {
    sentences: judged.length,
    right: count(({ isRight }) => isRight),
    rightTools: count(({ sentence, made }) =>
      toolsText(sentence.tasks) === toolsText(made.plan.tasks)
    ),
    wrongAndSure: count(({ isRight, made }) => !isRight && (made.confidence) > SURE),
    wrongAndRun: count(({ isRight, runs }) => !isRight && runs),
    rightAndRun: count(({ isRight, runs }) => isRight && runs),
  };
}

async function judgeSentence(sentence: Sentence, catalog: Catalog): Promise<JudgedSentence> {
  const search = new Search(catalog);
  const made = await intentPlan(sentence.intent, {
    search: (query) => search.search(query),
    output: (_, { outputSchema }) => outputSchema,
    next: () => new Map(),
  });
  const runs = made.plan.tasks.length > 0 && made.open.length === 0 &&
    made.confidence > WORKFLOW.confidence.default;
  return { sentence, made, isRight: isRight(sentence, made), runs };
}

function isRight({ tasks, unmet = [] }: Sentence, made: IntentPlan): boolean {
  const planned = made.plan.tasks;
  if (toolsText(tasks) !== toolsText(planned)) return false;
  if ((unmet.length > 0) !== (made.unmet.length > 0)) return false;
  return tasks.every(({ arguments: wanted }, at) => {
    const { id = "", arguments: present = {} } = planned[at] ?? {};
    const isOpen = (name: string) =>
      made.open.some(({ task, argument }) => task === id && argument === name);
    const names = new Set([...Object.keys(wanted), ...Object.keys(present)]);
    return [...names].every((name) => {
      const value = wanted[name];
      if (isObject(value) && value.$open === true) return isOpen(name);
      if (!isObject(value) || typeof value.$from !== "number") return same(value, present[name]);
      const { $ref } = Object(present[name]);
      return typeof $ref === "string" && $ref.startsWith(`${planned[value.$from]?.id}#`);
    });
  });
}

function same(one: Json | undefined, other: Json | undefined): boolean {
  return one !== undefined && other !== undefined && canonical(one) === canonical(other);
}

function toolsText(tasks: readonly { readonly tool: string }[]): string {
  return tasks.map(({ tool }) => tool).join();
}

async function main(): Promise<void> {
  const { values: { half, show } } = parseArgs({
    options: { half: { type: "string" }, show: { type: "boolean" } },
  });
  const judged = await judgeSentences(half as Sentence["half"] | undefined);
  for (const { sentence, made, isRight, runs } of show ? judged : []) {
    const mark = isRight ? "right" : runs ? "RUNS WRONG" : "wrong";
    console.log(`${mark} ${made.confidence ?? "-"} ${sentence.intent}`);
    if (!isRight) {
      const { plan, open, unmet } = made;
      console.log("   made  ", JSON.stringify({ tasks: plan.tasks, open, unmet }));
      console.log("   wanted", JSON.stringify({ tasks: sentence.tasks, unmet: sentence.unmet }));
    }
  }
  console.log(JSON.stringify(figuresOf(judged)));
}

if (import.meta.main) await main();
