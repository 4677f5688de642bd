/**
 * Measures how many of the needed tools the plan for a task has, relative to the hits of a search, and
 * the effect of the memory of use:
 * `deno task bench:intents --catalog FILE --queries FILE [--json]`.
 *
 * @module
 */

import { parseArgs } from "node:util";
import type { ToolDefinition } from "../../src/protocol/tool.ts";
import type { ToolId } from "../../src/core/tool_id.ts";
import type { Catalog } from "../../src/search/catalog.ts";
import { Search } from "../../src/search/search.ts";
import { planIntent } from "../../src/workflow/intent.ts";
import { UseMemory } from "../../src/workflow/use_memory.ts";
import { type GoldQuery, metrics } from "../metrics.ts";
import { catalogOf, readRows } from "../search.ts";

/** A query of the evaluation. `task` contains the names of its tasks. */
interface Row extends GoldQuery {
  readonly kind: string;
  readonly task: string;
}

/** How often the memory has seen each query. */
const REPETITIONS = 2;
/** The number of generated sequences, and the number of tasks in each. */
const SEQUENCES = 60;
const TASKS_EACH = 3;

/** Searches, makes plans and fills memories for one catalog. */
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

  /** Returns the tools of a plan, and these tools with their alternatives (`allTools`). */
  async plan(intent: string, memory?: UseMemory) {
    const { plan, alternatives } = await planIntent(intent, {
      search: (query) => this.#search.search(query, { memory }),
      output: (_, { outputSchema }) => outputSchema,
      next: (id) => memory?.nextTools(id) ?? new Map(),
    });
    const tools = plan.tasks.map(({ tool }) => tool);
    return { tools, allTools: [...new Set([...tools, ...Object.values(alternatives).flat()])] };
  }

  /** Returns a memory of searches for the queries, and of uses of the tools that they need. */
  async memoryOf(rows: readonly Row[]): Promise<UseMemory> {
    const on = { config: { memory: true } };
    const memory = new UseMemory({ path: "/dev/null/none" }, on, { warn: () => {} });
    for (const { query, gold } of [...Array(REPETITIONS)].flatMap(() => rows)) {
      memory.recordSearch("local", { query, foundTools: await this.hits(query) });
      for (const id of gold) this.#use(id, memory);
    }
    return memory;
  }

  #use(id: string, memory: UseMemory): void {
    // The evaluation uses the ids of the catalog.
    const definition: ToolDefinition | undefined = this.#catalog.get(id as ToolId)?.tool;
    if (definition === undefined) return;
    const call = { id, arguments: {}, via: "call", actor: "local" };
    const result = { content: [{ type: "text", text: "" }] };
    // The memory uses only these members of a call.
    const now = performance.now();
    memory.recordCall({
      ...{ call: call as never, definition, since: now, ended: now },
      outcome: { kind: "result", result },
    });
  }
}

/** Returns the share of needed tools that are in `ids`. */
function coveredShare({ gold, groups }: GoldQuery, ids: readonly string[]): number {
  const wanted = groups ?? gold.map((id) => [id]);
  return wanted.filter((group) => group.some((id) => ids.includes(id))).length / wanted.length;
}

function mean(values: readonly number[]): number {
  return Math.round(1_000 * values.reduce((sum, value) => sum + value, 0) / values.length) / 1_000;
}

/** Compares plans with searches. */
async function comparePlans(bench: Bench, tasks: readonly Row[], others: readonly Row[]) {
  const each = await Promise.all(tasks.map(async (row) => {
    const { tools, allTools } = await bench.plan(row.query);
    const memory = await bench.memoryOf(others.filter(({ task }) => !row.task.includes(task)));
    const used = await bench.plan(row.query, memory);
    const hits = await bench.hits(row.query, undefined, 50);
    return {
      tasks: tools.length,
      named: allTools.length,
      tools: coveredShare(row, tools),
      with_alternatives: coveredShare(row, allTools),
      ten_hits: coveredShare(row, hits.slice(0, 10)),
      as_many_hits: coveredShare(row, hits.slice(0, allTools.length)),
      with_memory: coveredShare(row, used.allTools),
      named_with_memory: used.allTools.length,
    };
  }));
  const names = Object.keys(each[0] ?? {}) as (keyof (typeof each)[number])[];
  const means = names.map((name) => [name, mean(each.map((figures) => figures[name]))]);
  return { queries: tasks.length, ...Object.fromEntries(means) };
}

/** Compares the order of search with and without memory. */
async function compareOrders(
  bench: Bench,
  queries: readonly Row[],
  memoryFor: (row: Row) => Promise<UseMemory>,
) {
  const ranked = { without: new Map<string, readonly string[]>(), with: new Map() };
  for (const row of queries) {
    ranked.without.set(row.query, await bench.hits(row.query));
    ranked.with.set(row.query, await bench.hits(row.query, await memoryFor(row)));
  }
  const figuresOf = (lists: ReadonlyMap<string, readonly string[]>) => {
    const { n, "H@1": first, "R@10": ten, "nDCG@10": gain } = metrics(
      queries,
      (query) => lists.get(query) ?? [],
    );
    return { queries: n, "H@1": first, "R@10": ten, "nDCG@10": gain };
  };
  return { without: figuresOf(ranked.without), with: figuresOf(ranked.with) };
}

/** Joins tasks to sequences; the result is the same in each run. */
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
  const rowsOfKind = (kind: string) => rows.filter((row) => row.kind === kind);
  const [tasks, steps, agent] = [rowsOfKind("task"), rowsOfKind("step"), rowsOfKind("agent")];
  const [words, plain] = [await bench.memoryOf(agent), await bench.memoryOf([...tasks, ...steps])];
  const figures = {
    plans: await comparePlans(bench, tasks, rows),
    plans_of_sequences: await comparePlans(bench, sequences(steps), rows),
    search_left_out_task: await compareOrders(
      bench,
      tasks,
      (row) => bench.memoryOf(rows.filter(({ task }) => task !== row.task)),
    ),
    search_left_out_step: await compareOrders(
      bench,
      steps,
      (row) => bench.memoryOf(rows.filter(({ task }) => task !== row.task)),
    ),
    search_steps_in_other_words: await compareOrders(bench, steps, () => Promise.resolve(words)),
    search_agent_in_other_words: await compareOrders(bench, agent, () => Promise.resolve(plain)),
  };
  const lines = Object.entries(figures).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  console.log(json ? JSON.stringify(figures) : lines.join("\n"));
  return 0;
}

if (import.meta.main) Deno.exitCode = await main();
