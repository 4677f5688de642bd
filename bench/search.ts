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

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      catalog: { type: "string" },
      queries: { type: "string" },
      model: { type: "string" },
      json: { type: "boolean" },
    },
  });
  if (values.catalog === undefined || values.queries === undefined) {
    console.error("Give --catalog FILE and --queries FILE, and --model DIR for hybrid search");
    Deno.exitCode = 2;
  } else {
    const search = new Search(catalogOf(values.catalog));
    const queries = readRows<Judged>(values.queries);
    const ranked = new Map<string, readonly string[]>();
    for (const { query } of queries) {
      const { hits } = await search.search(query, { limit: 10 });
      ranked.set(query, hits.map(({ id }) => id));
    }
    const found = metrics(queries, (query) => ranked.get(query) ?? []);
    console.log(JSON.stringify({ mode: "lexical", ...found }));
  }
}
