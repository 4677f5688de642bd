/**
 * Measures how well search finds tools:
 * `deno run -A bench/search.ts --catalog FILE --queries FILE [--model DIR] --json`.
 *
 * @module
 */

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { JsonObject } from "../src/core/json.ts";
import type { ToolDefinition } from "../src/core/tool.ts";
import { Catalog } from "../src/search/catalog.ts";
import { Search } from "../src/search/search.ts";
import { type Judged, metrics } from "./metrics.ts";

/** One line of a catalog file. */
interface Row {
  readonly server: string;
  readonly tool: string;
  readonly description?: string;
  readonly inputSchema?: JsonObject;
}

/** Reads a file of one JSON value a line. */
export function readRows<T>(path: string): readonly T[] {
  return readFileSync(path, "utf8").split("\n").filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line));
}

/** Fills a catalog with the tools of a file; tells what it does not take. */
export function catalogOf(path: string): Catalog {
  const catalog = new Catalog();
  const servers = Map.groupBy(readRows<Row>(path), ({ server }) => server);
  for (const [name, rows] of servers) {
    const tools: ToolDefinition[] = rows.map(({ tool, description, inputSchema }) => ({
      name: tool,
      ...(description === undefined ? {} : { description }),
      inputSchema: inputSchema ?? {},
    }));
    for (const { name: tool, reason } of catalog.set({ name, origin: "private" }, tools)) {
      console.error(`${name}:${tool} was left out: ${reason}`);
    }
  }
  return catalog;
}

/**
 * Would a model have been helped? The share of queries of which all that they need, or some of it,
 * is among the first ten hits: one request of `schema` then shows all of these whole.
 */
export function sufficed(
  queries: readonly Judged[],
  rank: (query: string) => readonly string[],
): { readonly sufficed: number; readonly sufficed_in_part: number } {
  const met = queries.map(({ query, gold, groups }) => {
    const shown = new Set(rank(query).slice(0, 10));
    return (groups ?? gold.map((id) => [id])).map((group) => group.some((id) => shown.has(id)));
  });
  const share = (is: (one: readonly boolean[]) => boolean) =>
    Math.round(1_000 * met.filter(is).length / met.length) / 1_000;
  return {
    sufficed: share((one) => one.every(Boolean)),
    sufficed_in_part: share((one) => one.some(Boolean)),
  };
}

/** How long searches took, in milliseconds. */
function timesOf(times: readonly number[]): { readonly p50_ms: number; readonly p95_ms: number } {
  const sorted = [...times].sort((one, other) => one - other);
  const part = (share: number) =>
    Math.round(100 * (sorted[Math.floor(share * sorted.length)] ?? 0)) / 100;
  return { p50_ms: part(0.5), p95_ms: part(0.95) };
}

async function measure(files: { readonly catalog: string; readonly queries: string }) {
  const catalog = catalogOf(files.catalog);
  const queries = readRows<Judged>(files.queries);
  const search = new Search(catalog);
  const begun = performance.now();
  await search.search("the first search reads all");
  const index_ms = Math.round(performance.now() - begun);
  const ranked = new Map<string, readonly string[]>();
  const times: number[] = [];
  let unmet = 0;
  for (const { query } of queries) {
    const asked = performance.now();
    const answer = await search.search(query);
    times.push(performance.now() - asked);
    unmet += answer.unmet.length;
    ranked.set(query, answer.hits.map(({ id }) => id));
  }
  const rank = (query: string) => ranked.get(query) ?? [];
  return {
    mode: "lexical",
    tools: catalog.list().length,
    ...metrics(queries, rank),
    ...sufficed(queries, rank),
    // Each of these queries has an answer, so these were told wrongly that nothing fits.
    nothing_fits: unmet,
    index_ms,
    ...timesOf(times),
  };
}

if (import.meta.main) {
  const { values: { catalog, queries, json } } = parseArgs({
    options: {
      catalog: { type: "string" },
      queries: { type: "string" },
      model: { type: "string" },
      json: { type: "boolean" },
    },
  });
  if (catalog === undefined || queries === undefined) {
    console.error("Give --catalog FILE and --queries FILE, and --model DIR for hybrid search");
    Deno.exitCode = 2;
  } else {
    const figures = await measure({ catalog, queries });
    if (json) console.log(JSON.stringify(figures));
    else for (const [name, value] of Object.entries(figures)) console.log(`${name}: ${value}`);
  }
}
