/**
 * Measures how many of the needed tools are in the plan of a task, relative to the hits of a search,
 * and the effect of the memory of use:
 * `deno task bench:intents --catalog FILE --queries FILE [--json]`.
 *
 * @module
 */

import { parseArgs } from "node:util";
import type { ToolDefinition } from "../src/protocol/tool.ts";
import type { ToolId } from "../src/core/tool_id.ts";
import type { Catalog } from "../src/search/catalog.ts";
import { Search } from "../src/search/search.ts";
import { intentPlan } from "../src/workflow/intent.ts";
import { UseMemory } from "../src/workflow/use_memory.ts";
import { type Judged, metrics } from "./metrics.ts";
import { catalogOf, readRows } from "./search.ts";

/** A query of the evaluation; `task` names the task, or the tasks, that it belongs to. */
interface Row extends Judged {
  readonly kind: string;
  readonly task: string;
}

/** How often each sequence was worked through before the left-out one. */
const REPEATED = 2;
/** How many sequences are generated, of how many tasks each. */
const SEQUENCES = 60;
const TASKS_EACH = 3;

/** Searches, plans and remembers over one catalog. */
class Bench {
  readonly #catalog: Catalog;
  readonly #search: Search;

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
    this.#search = new Search(catalog);
  }

  /** Returns the hits of a query. */
  async hits(query: string, memory?: UseMemory, limit = 10): Promise<readonly ToolId[]> {
    return (await this.#search.search(query, { limit, memory })).hits.map(({ id }) => id);
  }

  /** Returns the tools of a plan, and those with the alternatives. */
  async plan(intent: string, memory?: UseMemory) {
    const { plan, alternatives } = await intentPlan(intent, {
      search: (query) => this.#search.search(query, { memory }),
      output: (_, { outputSchema }) => outputSchema,
      next: (id) => memory?.next(id) ?? new Map(),
    });
    const tools = plan.tasks.map(({ tool }) => tool);
    return { tools, named: [...new Set([...tools, ...Object.values(alternatives).flat()])] };
  }

  /** Remembers that these queries were searched for, and that the tools that they need were used. */
  async learned(rows: readonly Row[]): Promise<UseMemory> {
    const on = { config: { memory: true } };
    const memory = new UseMemory({ path: "/dev/null/none" }, on, { warn: () => {} });
    for (const { query, gold } of [...Array(REPEATED)].flatMap(() => rows)) {
      memory.searched("local", { query, tools: await this.hits(query) });
      for (const id of gold) this.#use(id, memory);
    }
    return memory;
  }

  #use(id: string, memory: UseMemory): void {
    // The ids of the evaluation are those of the catalog.
    const definition: ToolDefinition | undefined = this.#catalog.get(id as ToolId)?.tool;
    if (definition === undefined) return;
    const call = { id, arguments: {}, via: "call", actor: "local" };
    const result = { content: [{ type: "text", text: "" }] };
    // A memory looks at nothing else of a call.
    const now = performance.now();
    memory.note({
      ...{ call: call as never, definition, since: now, ended: now },
      outcome: { kind: "result", result },
    });
  }
}

/** Returns the part of the needed tools that are among these. */
function covered({ gold, groups }: Judged, ids: readonly string[]): number {
  const wanted = groups ?? gold.map((id) => [id]);
  return wanted.filter((group) => group.some((id) => ids.includes(id))).length / wanted.length;
}

function mean(values: readonly number[]): number {
  return Math.round(1_000 * values.reduce((sum, one) => sum + one, 0) / values.length) / 1_000;
}

/** Compares plans with searches. */
async function plans(bench: Bench, tasks: readonly Row[], others: readonly Row[]) {
  const each = await Promise.all(tasks.map(async (row) => {
    const { tools, named } = await bench.plan(row.query);
    const memory = await bench.learned(others.filter(({ task }) => !row.task.includes(task)));
    const used = await bench.plan(row.query, memory);
    const hits = await bench.hits(row.query, undefined, 50);
    return {
      tasks: tools.length,
      named: named.length,
      tools: covered(row, tools),
      with_alternatives: covered(row, named),
      ten_hits: covered(row, hits.slice(0, 10)),
      as_many_hits: covered(row, hits.slice(0, named.length)),
      with_memory: covered(row, used.named),
      named_with_memory: used.named.length,
    };
  }));
  const names = Object.keys(each[0] ?? {}) as (keyof (typeof each)[number])[];
  const means = names.map((name) => [name, mean(each.map((one) => one[name]))]);
  return { queries: tasks.length, ...Object.fromEntries(means) };
}

/** Compares the order of search with and without memory. */
async function order(
  bench: Bench,
  queries: readonly Row[],
  memoryFor: (row: Row) => Promise<UseMemory>,
) {
  const ranked = { without: new Map<string, readonly string[]>(), with: new Map() };
  for (const row of queries) {
    ranked.without.set(row.query, await bench.hits(row.query));
    ranked.with.set(row.query, await bench.hits(row.query, await memoryFor(row)));
  }
  const of = (lists: ReadonlyMap<string, readonly string[]>) => {
    const { n, "H@1": first, "R@10": ten, "nDCG@10": gain } = metrics(
      queries,
      (query) => lists.get(query) ?? [],
    );
    return { queries: n, "H@1": first, "R@10": ten, "nDCG@10": gain };
  };
  return { without: of(ranked.without), with: of(ranked.with) };
}

/** Joins tasks to longer ones, always the same. */
function sequences(tasks: readonly Row[]): readonly Row[] {
  return Array.from({ length: SEQUENCES }, (_, at) => {
    const parts = Array.from(
      { length: TASKS_EACH },
      (_, part) => tasks[(at * 7 + part * (1 + at % 11)) % tasks.length],
    ).filter((row) => row !== undefined);
    return {
      kind: "sequence",
      task: parts.map(({ task }) => task).join(),
      query: parts.map(({ query }) => query).join(", then "),
      gold: parts.flatMap(({ gold }) => gold),
      groups: parts.flatMap(({ gold, groups }) => groups ?? gold.map((id) => [id])),
    };
  });
}

async function main(): Promise<number> {
  const { values: { catalog, queries, json } } = parseArgs({
    options: {
      catalog: { type: "string" },
      queries: { type: "string" },
      json: { type: "boolean" },
    },
  });
  if (catalog === undefined || queries === undefined) {
    console.error("Give --catalog FILE and --queries FILE");
    return 2;
  }
  const bench = new Bench(catalogOf(catalog));
  const rows = readRows<Row>(queries);
  const of = (kind: string) => rows.filter((row) => row.kind === kind);
  const [tasks, steps, agent] = [of("task"), of("step"), of("agent")];
  const [words, plain] = [await bench.learned(agent), await bench.learned([...tasks, ...steps])];
  const figures = {
    plans: await plans(bench, tasks, rows),
    plans_of_sequences: await plans(bench, sequences(steps), rows),
    search_left_out_task: await order(
      bench,
      tasks,
      (row) => bench.learned(rows.filter(({ task }) => task !== row.task)),
    ),
    search_left_out_step: await order(
      bench,
      steps,
      (row) => bench.learned(rows.filter(({ task }) => task !== row.task)),
    ),
    search_steps_in_other_words: await order(bench, steps, () => Promise.resolve(words)),
    search_agent_in_other_words: await order(bench, agent, () => Promise.resolve(plain)),
  };
  const lines = Object.entries(figures).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  console.log(json ? JSON.stringify(figures) : lines.join("\n"));
  return 0;
}

if (import.meta.main) Deno.exitCode = await main();
