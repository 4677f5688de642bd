/**
 * Measures how well search finds tools:
 * `deno run -A bench/search.ts --catalog FILE --queries FILE [--model DIR | --words] --json`.
 *
 * @module
 */

import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Meaning } from "../src/search/meaning.ts";
import { Log } from "../src/audit/log.ts";
import { Redactor } from "../src/audit/redact.ts";
import { readEnvironment } from "../src/config/env.ts";
import { limitsOf } from "../src/config/limits.ts";
import type { JsonObject } from "../src/core/json.ts";
import type { ToolDefinition } from "../src/protocol/tool.ts";
import { Catalog, type CatalogEntry } from "../src/search/catalog.ts";
import { Search } from "../src/search/search.ts";
import { shippedWords } from "../src/search/shipped.ts";
import { WordMeaning } from "../src/search/word_meaning.ts";
import { editedRequests } from "./edits.ts";
import { type GoldQuery, metrics } from "./metrics.ts";

/** One line of a catalog file. */
interface Row {
  readonly server: string;
  readonly tool: string;
  readonly description?: string;
  readonly inputSchema?: JsonObject;
}

/** Reads a file with one JSON value per line. */
export function readRows<T>(path: string): readonly T[] {
  return readFileSync(path, "utf8").split("\n").filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line));
}

/** A product that no tool of the catalogs mentions, and a request that mentions it. */
interface AbsentProduct {
  readonly name: string;
  readonly query: string;
}

const ABSENT = decodeURIComponent(new URL("absent_products.jsonl", import.meta.url).pathname);

/** Sentences that no tool of the catalogs answers. The code of the search contains none of them. */
const UNANSWERABLE = [
  "what is the meaning of life",
  "how tall is the eiffel tower in feet",
  "knit a woolen sweater for my grandmother",
  "who won the 1998 world cup final",
  "asdfghjkl qwerty",
  "tune a violin",
  "train a dog to sit",
  "remove wine stain from carpet",
  "best way to boil eggs",
  "poem about autumn leaves",
  "fix a leaking tap",
  "grow tomatoes on a balcony",
  "tie a bow tie",
  "learn to juggle",
  "name of the first roman emperor",
  "sew a button",
  "paint the fence white",
  "difference between alligators and crocodiles",
  "how to whistle loudly",
  "is a tomato a fruit",
];

/** Creates a catalog with the tools of a file. Prints the tools that the catalog refuses. */
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
 * Returns the shares of queries for which all needed tools, or some of them, are among the first ten
 * hits. A model can then read their definitions with one request of `schema`.
 */
export function sufficiency(
  queries: readonly GoldQuery[],
  rank: (query: string) => readonly string[],
): { readonly sufficed: number; readonly sufficed_in_part: number } {
  const met = queries.map(({ query, gold, groups }) => {
    const shownIds = new Set(rank(query).slice(0, 10));
    return (groups ?? gold.map((id) => [id])).map((group) => group.some((id) => shownIds.has(id)));
  });
  const share = (matches: (groups: readonly boolean[]) => boolean) =>
    Math.round(1_000 * met.filter(matches).length / met.length) / 1_000;
  return {
    sufficed: share((groups) => groups.every(Boolean)),
    sufficed_in_part: share((groups) => groups.some(Boolean)),
  };
}

/** Returns percentiles of the times of searches, in milliseconds. */
function percentiles(
  times: readonly number[],
): { readonly p50_ms: number; readonly p95_ms: number } {
  const sorted = [...times].sort((a, b) => a - b);
  const part = (share: number) =>
    Math.round(100 * (sorted[Math.floor(share * sorted.length)] ?? 0)) / 100;
  return { p50_ms: part(0.5), p95_ms: part(0.95) };
}

/** Returns the used memory of the process; exact only with `--v8-flags=--expose-gc`. */
function memoryBytes(): number {
  const collectGarbage: unknown = Reflect.get(globalThis, "gc");
  if (typeof collectGarbage === "function") collectGarbage();
  const { heapUsed, external } = Deno.memoryUsage();
  return heapUsed + external;
}

/** Opens a model with a separate PML home. The home is kept, so that tools are indexed only once. */
async function meaningOf(folder: string, tools: readonly CatalogEntry[]): Promise<Meaning> {
  const environment = { ...readEnvironment(), home: join(tmpdir(), "pml-bench-model") };
  const meaning = new Meaning(folder, {
    ...{ environment, limits: limitsOf({}), isLongRunning: false },
    log: new Log(new Redactor(), "warn"),
    groups: () => Promise.resolve({ mark: "bench", add: async () => {}, remove: async () => {} }),
    proxyVariables: () => ({}),
    onAllIndexed: () => {},
  });
  await meaning.install((message) => console.error(message));
  const tell = (done: number, total: number) => console.error(`Indexed ${done} of ${total} tools`);
  await meaning.index(tools, { report: tell, signal: new AbortController().signal });
  return meaning;
}

/** Returns R@1 for the words of 200 names, without and with a typing mistake. */
async function editsOf(search: Search, catalog: Catalog) {
  const edits = editedRequests(catalog.list(), { count: 200, seed: 50 });
  let [names_first, edited_first] = [0, 0];
  for (const { query, edited, gold } of edits) {
    const isFirst = async (text: string) => (await search.search(text)).hits[0]?.id === gold[0];
    if (await isFirst(query)) names_first += 1 / edits.length;
    if (await isFirst(edited)) edited_first += 1 / edits.length;
  }
  return {
    names_first: Math.round(1_000 * names_first) / 1_000,
    edited_first: Math.round(1_000 * edited_first) / 1_000,
  };
}

/** Returns for how many of the absent products the answer names the product. */
async function countNamedAbsent(search: Search): Promise<number> {
  let absent_told = 0;
  for (const { name, query } of readRows<AbsentProduct>(ABSENT)) {
    const { notes } = await search.search(query);
    if (notes.some(({ words }) => words.includes(name))) absent_told += 1;
  }
  return absent_told;
}

/** Returns the shares of unanswerable sentences that find nothing, and that match only loosely. */
async function nonsenseShares(search: Search) {
  let nonsense_told = 0;
  let nonsense_remarked = 0;
  for (const query of UNANSWERABLE) {
    const { hits, isLoose } = await search.search(query);
    if (hits.length === 0) nonsense_told += 1 / UNANSWERABLE.length;
    if (isLoose) nonsense_remarked += 1 / UNANSWERABLE.length;
  }
  return {
    nonsense_told: Math.round(100 * nonsense_told) / 100,
    nonsense_remarked: Math.round(100 * nonsense_remarked) / 100,
  };
}

async function measure(files: {
  readonly catalog: string;
  readonly queries: string;
  readonly model?: string | undefined;
  /** Whether to compare only words. */
  readonly words?: boolean | undefined;
}) {
  const catalog = catalogOf(files.catalog);
  const queries = readRows<GoldQuery>(files.queries);
  const { model } = files;
  await using meaning = model === undefined
    ? undefined
    : await meaningOf(resolve(model), catalog.list());
  const words = await shippedWords();
  const semantics = meaning === undefined ? [new WordMeaning(words)] : [meaning];
  const search = new Search(catalog, {
    semantics: () => files.words === true ? [] : semantics,
    words: () => words,
  });
  const before = memoryBytes();
  const startedAt = performance.now();
  await search.search("the first search reads all");
  const index_ms = Math.round(performance.now() - startedAt);
  const index_mb = Math.round((memoryBytes() - before) / 1e5) / 10;
  const ranked = new Map<string, readonly string[]>();
  const times: number[] = [];
  const modes = new Set<string>();
  let [unmet, noted] = [0, 0];
  for (const { query } of queries) {
    const since = performance.now();
    const answer = await search.search(query);
    times.push(performance.now() - since);
    modes.add(answer.mode);
    unmet += answer.unmet.length;
    if (answer.notes.length > 0) noted += 1 / queries.length;
    ranked.set(query, answer.hits.map(({ id }) => id));
  }
  const rank = (query: string) => ranked.get(query) ?? [];
  return {
    mode: [...modes].join(" and "),
    tools: catalog.list().length,
    ...metrics(queries, rank),
    ...sufficiency(queries, rank),
    // Each of these queries has an answer, so "nothing fits" is wrong for each.
    nothing_fits: unmet,
    // The share of these queries whose answer names a word that no tool has.
    noted: Math.round(1_000 * noted) / 1_000,
    absent_told: await countNamedAbsent(search),
    ...await nonsenseShares(search),
    ...await editsOf(search, catalog),
    index_ms,
    index_mb,
    ...percentiles(times),
  };
}

async function main(): Promise<number> {
  const { values: { catalog, queries, model, words, json } } = parseArgs({
    options: {
      catalog: { type: "string" },
      queries: { type: "string" },
      model: { type: "string" },
      words: { type: "boolean" },
      json: { type: "boolean" },
    },
  });
  if (catalog === undefined || queries === undefined) {
    console.error("Give --catalog FILE and --queries FILE, and --model DIR or --words");
    return 2;
  }
  const figures = await measure({ catalog, queries, model, words });
  const lines = Object.entries(figures).map(([name, value]) => `${name}: ${value}`);
  console.log(json ? JSON.stringify(figures) : lines.join("\n"));
  return 0;
}

if (import.meta.main) Deno.exitCode = await main();
