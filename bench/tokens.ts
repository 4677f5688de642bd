/**
 * Counts the tokens of lists and answers for a client, with the tables of o200k and as PML estimates
 * them: `deno task bench:tokens [--catalog FILE] [--queries FILE] [--offline] [--json]`.
 *
 * The catalog's rows become servers of a real PML, and the reference servers are installed and listed
 * with the built-ins; the counted texts are those that a client would receive.
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
import { definitionOf, listTools, type Row, rowsOf, withApp } from "./catalog.ts";
import { pathOf } from "./measure.ts";

/** Some texts of one kind, counted and estimated. */
interface Count {
  readonly what: string;
  /** How many there were. */
  readonly count: number;
  /** How many tools a list shows, in the middle. */
  readonly tools?: number;
  readonly median: number;
  readonly p95: number;
  /** PML's estimate of the median one. */
  readonly estimated: number;
  /** How far the estimates are off in total, as a part: less than nothing where they are too low. */
  readonly error: number;
  /** The part of the texts whose estimate is within a tenth. */
  readonly within10: number;
}

const REFERENCE = ["everything", "filesystem", "memory", "sequential-thinking"];
const VERSION = "2026.8.31";
/** So many queries are asked, spread evenly, so that every way can be measured with all of them. */
const LISTED_MAX = 20;
const SCHEMAS_MAX = 200;

if (import.meta.main) await main(Deno.args);

async function main(args: readonly string[]): Promise<void> {
  const valueOf = (name: string) => args[args.indexOf(name) + 1 || args.length];
  const catalog = valueOf("--catalog") ?? pathOf("../shared/search/catalog.jsonl");
  const rows = await rowsOf<Row>(catalog);
  const queries = await rowsOf<{ readonly query: string }>(
    valueOf("--queries") ?? join(dirname(catalog), "queries.dev.jsonl"),
  );
  if (rows === undefined) {
    console.error(`There is no catalog at ${catalog}: name one with --catalog FILE`);
    Deno.exitCode = 2;
    return;
  }
  const found = {
    catalog: await withApp({}, (app) => ofCatalog(app, { rows, queries })),
    reference: args.includes("--offline") ? undefined : await ofReference(),
  };
  if (args.includes("--json")) console.log(JSON.stringify(found));
  else for (const [name, counts] of Object.entries(found)) if (counts) print(name, counts);
}

async function ofCatalog(app: App, { rows, queries }: {
  readonly rows: readonly Row[];
  readonly queries: readonly { readonly query: string }[] | undefined;
}): Promise<readonly Count[]> {
  await listTools(app, rows);
  const each = rows.map((row) => JSON.stringify(definitionOf(row)));
  const own = app.catalog.list().map(({ tool }) => (tool.description ?? tool.name).split("\n")[0]);
  const asked = queries?.map(({ query }) => query) ?? spread(own, 100).map((line) => line ?? "");
  return [...await ofHouse(app, asked), countOf("one definition", each)];
}

/** Installs and asks the reference servers; nothing where that cannot be done here. */
async function ofReference(): Promise<readonly Count[] | undefined> {
  const servers = Object.fromEntries(REFERENCE.map((name) => {
    const spec = `@modelcontextprotocol/server-${name}@${VERSION}`;
    return [`real-${name}`, {
      command: "npx",
      args: ["-y", spec, ...name === "filesystem" ? ["."] : []],
    }];
  }));
  try {
    return await withApp(servers, async (app) => {
      // The first installs what most of the others need, too.
      for (const name of Object.keys(servers)) await app.directory.at(name).list("tools");
      await app.servers.lists.prepare();
      return await ofHouse(app, [
        "read a file",
        "add to the knowledge graph",
        "think step by step",
      ]);
    });
  } catch (error) {
    console.error(`The reference servers are left out: ${error}`);
    return undefined;
  }
}

/** Measures the texts that clients get for the tools of a PML. */
async function ofHouse(app: App, queries: readonly string[]): Promise<readonly Count[]> {
  const gateway = await app.gateway();
  const counts: Count[] = [];
  for (const { name, overrides } of await presets()) {
    const options: GatewayOptions = gatewayFrom(overrides);
    counts.push(listsOf(`tools/list ${name}`, [await gateway.exposed(options)]));
    if (!["semantic", "hybrid"].includes(options.exposure)) continue;
    const lists = [];
    for (const query of spread(queries, LISTED_MAX)) {
      lists.push(await gateway.exposed(options, { query }));
    }
    counts.push(listsOf(`tools/list ${name} with a query`, lists));
  }
  const ids = spread(app.catalog.list().map(({ id }) => id), SCHEMAS_MAX);
  return [
    ...counts,
    countOf(
      "search, one query",
      await answersOf(app, "search", queries.map((query) => ({ query }))),
    ),
    countOf("schema, 1 tool", await answersOf(app, "schema", ids.map((id) => ({ tools: [id] })))),
  ];
}

async function answersOf(
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

function listsOf(what: string, lists: readonly (readonly JsonObject[])[]): Count {
  const tools = partOf(lists.map(({ length }) => length), 0.5);
  return { ...countOf(what, lists.map((list) => JSON.stringify(list))), tools };
}

function countOf(what: string, texts: readonly string[]): Count {
  const pairs = texts.map((text) => [countTokens(text), tokensOf(text)] as const);
  const counted = pairs.map(([count]) => count);
  const estimates = pairs.map(([, estimate]) => estimate);
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
  const near = pairs.filter(([count, estimate]) => Math.abs(estimate - count) <= count / 10);
  return {
    what,
    count: texts.length,
    median: partOf(counted, 0.5),
    p95: partOf(counted, 0.95),
    estimated: partOf(estimates, 0.5),
    error: sum(estimates) / sum(counted) - 1,
    within10: near.length / texts.length,
  };
}

function partOf(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
}

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
}
