/**
 * Counts the tokens of lists and answers for a client, with the o200k tokenizer and with PML's
 * estimate: `deno task bench:tokens [--catalog FILE] [--queries FILE] [--offline] [--json]`.
 *
 * The rows of the catalog become servers of a real PML. A second PML installs the reference servers;
 * its lists also contain the built-ins. The counted texts are those that a client would receive.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { App } from "../src/app/app.ts";
import { gatewayFrom, type GatewayOptions } from "../src/config/gateway_options.ts";
import { presets } from "../src/config/presets.ts";
import { NO_CLIENT } from "../src/protocol/call.ts";
import { Cancellation } from "../src/core/cancellation.ts";
import { type JsonObject, textOf } from "../src/core/json.ts";
import { tokensOf } from "../src/core/tokens.ts";
import { type LabelledQuery, recallByKind } from "./answers.ts";
import { definitionOf, listTools, type Row, rowsOf, withApp } from "./catalog.ts";
import { pathOf } from "./measure.ts";

/** The counted and estimated tokens of texts of one kind. */
interface Count {
  readonly what: string;
  /** The number of texts. */
  readonly count: number;
  /** The median number of tools in a list. */
  readonly tools?: number;
  readonly median: number;
  readonly p95: number;
  /** The median of PML's estimates. */
  readonly estimated: number;
  /** The relative error of the sum of all estimates; negative if they are too low. */
  readonly error: number;
  /** The share of texts whose estimate differs by at most 10%. */
  readonly within10: number;
  /** The share of needed tools that the texts contain, by the kind of the query. */
  readonly recall?: Readonly<Record<string, number>>;
}

const REFERENCE = ["everything", "filesystem", "memory", "sequential-thinking"];
const VERSION = "2026.8.31";
/** At most this many queries get a list, and this many tools a schema, evenly spread over all. */
const LISTED_MAX = 20;
const SCHEMAS_MAX = 200;

if (import.meta.main) await main(Deno.args);

async function main(args: readonly string[]): Promise<void> {
  // The argument after the option; undefined if the option is missing.
  const valueOf = (name: string) => args[args.indexOf(name) + 1 || args.length];
  const catalog = valueOf("--catalog") ?? pathOf("../shared/search/catalog.jsonl");
  const rows = await rowsOf<Row>(catalog);
  const queries = await rowsOf<LabelledQuery>(
    valueOf("--queries") ?? join(dirname(catalog), "queries.dev.jsonl"),
  );
  if (rows === undefined) {
    console.error(`There is no catalog at ${catalog}: give one with --catalog FILE`);
    Deno.exitCode = 2;
    return;
  }
  const counts = {
    catalog: await withApp({}, (app) => countCatalog(app, { rows, queries })),
    reference: args.includes("--offline") ? undefined : await countReference(),
  };
  if (args.includes("--json")) console.log(JSON.stringify(counts));
  else for (const [name, texts] of Object.entries(counts)) if (texts) print(name, texts);
}

async function countCatalog(app: App, { rows, queries }: {
  readonly rows: readonly Row[];
  readonly queries: readonly LabelledQuery[] | undefined;
}): Promise<readonly Count[]> {
  await listTools(app, rows);
  const each = rows.map((row) => JSON.stringify(definitionOf(row)));
  const firstLines = app.catalog.list().map(({ tool }) =>
    (tool.description ?? tool.name).split("\n")[0]
  );
  const chosenQueries = queries ?? spread(firstLines, 100).map((line) => ({ query: line ?? "" }));
  return [...await countApp(app, chosenQueries), countTexts("one definition", each)];
}

/** Installs and counts the reference servers. Returns undefined if that fails. */
async function countReference(): Promise<readonly Count[] | undefined> {
  const servers = Object.fromEntries(REFERENCE.map((name) => {
    const spec = `@modelcontextprotocol/server-${name}@${VERSION}`;
    return [`real-${name}`, {
      command: "npx",
      args: ["-y", spec, ...name === "filesystem" ? ["."] : []],
    }];
  }));
  try {
    return await withApp(servers, async (app) => {
      // One after the other, because they share most of their dependencies.
      for (const name of Object.keys(servers)) await app.directory.get(name).list("tools");
      await app.servers.lists.prepare();
      return await countApp(app, [
        { query: "read a file" },
        { query: "add to the knowledge graph" },
        { query: "think step by step" },
      ]);
    });
  } catch (error) {
    console.error(`The reference servers are left out: ${error}`);
    return undefined;
  }
}

/** Counts the texts that clients get for the tools of a PML. */
async function countApp(app: App, queries: readonly LabelledQuery[]): Promise<readonly Count[]> {
  const gateway = await app.gateway();
  const counts: Count[] = [];
  for (const { name, overrides } of await presets()) {
    const options: GatewayOptions = gatewayFrom(overrides);
    counts.push(countLists(`tools/list ${name}`, [await gateway.exposedTools(options)]));
    if (!["semantic", "hybrid"].includes(options.exposure)) continue;
    const lists = [];
    for (const { query } of spread(queries, LISTED_MAX)) {
      lists.push(await gateway.exposedTools(options, { query }));
    }
    counts.push(countLists(`tools/list ${name} with a query`, lists));
  }
  const answers = await callAll(app, "search", queries.map(({ query }) => ({ query })));
  const ids = spread(app.catalog.list().map(({ id }) => id), SCHEMAS_MAX);
  return [
    ...counts,
    { ...countTexts("search, one query", answers), recall: recallByKind(queries, answers) },
    countTexts("schema, 1 tool", await callAll(app, "schema", ids.map((id) => ({ tools: [id] })))),
  ];
}

async function callAll(
  app: App,
  name: "search" | "schema",
  asked: readonly JsonObject[],
): Promise<readonly string[]> {
  const calls = await (await app.gateway()).metaCalls();
  const scope = { cancellation: new Cancellation(), client: NO_CLIENT, answer: undefined };
  const texts: string[] = [];
  for (const args of asked) {
    const outcome = await calls.call(name, { arguments: args, scope });
    if (outcome.kind !== "result") continue;
    texts.push(outcome.result.content.map(({ text }) => textOf(text)).join("\n"));
  }
  return texts;
}

function countLists(what: string, lists: readonly (readonly JsonObject[])[]): Count {
  const tools = percentileOf(lists.map(({ length }) => length), 0.5);
  return { ...countTexts(what, lists.map((list) => JSON.stringify(list))), tools };
}

function countTexts(what: string, texts: readonly string[]): Count {
  const pairs = texts.map((text) => [countTokens(text), tokensOf(text)] as const);
  const tokenCounts = pairs.map(([count]) => count);
  const estimates = pairs.map(([, estimate]) => estimate);
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  const near = pairs.filter(([count, estimate]) => Math.abs(estimate - count) <= count / 10);
  return {
    what,
    count: texts.length,
    median: percentileOf(tokenCounts, 0.5),
    p95: percentileOf(tokenCounts, 0.95),
    estimated: percentileOf(estimates, 0.5),
    error: sum(estimates) / sum(tokenCounts) - 1,
    within10: near.length / texts.length,
  };
}

function percentileOf(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
}

/** Returns at most `most` of the values, evenly spaced. */
function spread<T>(values: readonly T[], most: number): readonly T[] {
  const step = Math.max(1, values.length / most);
  return values.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step));
}

function print(name: string, counts: readonly Count[]): void {
  const percent = (part: number) => `${(part * 100).toFixed(1)} %`;
  console.log(`\n${name}: tokens of o200k, and PML's estimate`);
  console.table(Object.fromEntries(counts.map(({ what, ...count }) => [what, {
    texts: count.count,
    tools: count.tools ?? "",
    median: count.median,
    p95: count.p95,
    estimated: count.estimated,
    "error in total": percent(count.error),
    "within 10 %": percent(count.within10),
  }])));
  for (const { recall = {} } of counts) {
    for (const [kind, part] of Object.entries(recall)) {
      console.log(
        `${percent(part)} of the tools that a query of the kind "${kind}" needs are in its answer`,
      );
    }
  }
}
