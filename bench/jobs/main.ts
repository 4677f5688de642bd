/**
 * Measures five jobs with the reference servers, with single calls, with a plan and with code:
 * `deno task bench:jobs [--json] [--catalog FILE] [--recall SHARE]`. Installs two npm packages.
 * With a catalog, also prints the price of the jobs with up to forty servers (`table.ts`).
 *
 * Tokens (o200k) are those of the texts that the model writes and reads, each counted once. The time
 * is that of all round trips, without the model.
 *
 * @module
 */

import assert from "node:assert/strict";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { connect, type Connection } from "../../tests/kit/client.ts";
import { makeWorkspace, type Workspace } from "../../tests/kit/workspace.ts";
import { type Row, rowsOf } from "../catalog.ts";
import { type CallTool, type Job, JOBS, type Outputs } from "./jobs.ts";
import { costsOf, type MeasuredJob, type WayCost } from "./table.ts";

/** The cost of one job done in one way. */
interface Cost {
  readonly job: string;
  readonly way: string;
  readonly tokens: number;
  readonly roundTrips: number;
  readonly ms: number;
}

/** The tokens of a turn, and the tool that the model called in it. */
interface RecordedTurn {
  readonly tool: string;
  readonly written: number;
  readonly read: number;
}

/** A way to do a job. Returns the answer. */
type Way = (job: Job, client: CountingClient) => Promise<string>;

const VERSION = "2026.8.31";
const INSTALL_MS = 180_000;
/** The number of runs; the result is their median. */
const RUNS = 3;
/** The recall that `bench/search.ts` measures for steps and agents' queries with 1,282 tools. */
const RECALL = 0.87;

const WAYS: Readonly<Record<string, Way>> = {
  "tool by tool": (job, client) => job.direct(client.call),
  plan: async ({ plan: { tasks, reads, finish } }, client) => {
    const answer = JSON.parse(await client.meta("execute_workflow", { plan: { tasks } }));
    return await finish(await outputsOf(answer, { reads, client }), client.call);
  },
  code: ({ code }, client) => client.meta("execute_code", { code }),
};

async function main(args: readonly string[]): Promise<void> {
  await using ws = await workspaceOf();
  await using connection = await connect(ws);
  const client = new CountingClient(connection);
  // Not counted: installs happen once, and starts once per session.
  await client.begin();
  const costs: Cost[] = [];
  const measured: MeasuredJob[] = [];
  for (const job of JOBS) {
    const turns: Record<string, readonly RecordedTurn[]> = {};
    const ends = new Set<string>();
    for (const [way, work] of Object.entries(WAYS)) {
      const runs: Cost[] = [];
      for (let run = 0; run < RUNS; run++) {
        await client.begin();
        const answer = await work(job, client);
        const { tokens, roundTrips, ms } = client;
        runs.push({ job: job.name, way, tokens, roundTrips, ms });
        turns[way] = [...client.turns];
        ends.add(`${answer}\n${job.written ? await Deno.readTextFile(ws.file(job.written)) : ""}`);
      }
      const [, middle] = runs.toSorted((a, b) => a.ms - b.ms);
      if (middle !== undefined) costs.push(middle);
    }
    assert.equal(ends.size, 1, `the ways of "${job.name}" have different results`);
    const { "tool by tool": calls = [], code = [] } = turns;
    measured.push({ name: job.name, calls, code });
  }
  const rows = await readCatalog(args);
  const prices = rows && await costsOf(measured, { rows, recall: readRecall(args) });
  if (args.includes("--json")) console.log(JSON.stringify({ costs, prices }));
  else {
    print(costs);
    if (prices !== undefined) printPrices(prices);
  }
}

/** Returns the tools of the catalog in `--catalog`; undefined without that option. */
async function readCatalog(args: readonly string[]): Promise<readonly Row[] | undefined> {
  const at = args.indexOf("--catalog");
  if (at === -1) return undefined;
  const rows = await rowsOf<Row>(args[at + 1] ?? "");
  assert.ok(rows !== undefined, `There is no catalog at ${args[at + 1]}`);
  return rows;
}

/** Returns the share of steps whose tool one search finds; by default `RECALL`. */
function readRecall(args: readonly string[]): number {
  const at = args.indexOf("--recall");
  return at === -1 ? RECALL : Number(args[at + 1]);
}

async function workspaceOf(): Promise<Workspace> {
  const server = (name: string, ...args: readonly string[]) => ({
    command: "npx",
    args: ["-y", `@modelcontextprotocol/server-${name}@${VERSION}`, ...args],
  });
  return await makeWorkspace({
    files: Object.assign({}, ...JOBS.map(({ files }) => files)),
    pml: {
      version: 1,
      permissions: { allow: ["files:*", "memory:*"] },
      mcpServers: { files: server("filesystem", "."), memory: server("memory") },
    },
  });
}

/** A client that counts the tokens that its model would write and read. */
class CountingClient {
  tokens = 0;
  roundTrips = 0;
  ms = 0;
  turns: RecordedTurn[] = [];
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Calls a tool of a server with the meta-tool `call`. */
  readonly call: CallTool = (tool, args) => this.meta("call", { tool, arguments: args });

  /** Starts the servers, empties the graph, and resets the counts. */
  async begin(): Promise<void> {
    await this.call("files:list_allowed_directories", {});
    const { entities } = JSON.parse(await this.call("memory:read_graph", {}));
    const entityNames = entities.map(({ name }: { readonly name: string }) => name);
    await this.call("memory:delete_entities", { entityNames });
    // Waits until PML has started the next child for code.
    await new Promise((resolve) => setTimeout(resolve, 500));
    [this.tokens, this.roundTrips, this.ms, this.turns] = [0, 0, 0, []];
  }

  /** Calls a meta-tool and returns its text. */
  async meta(name: string, args: Readonly<Record<string, unknown>>): Promise<string> {
    const since = performance.now();
    const params = { name, arguments: args };
    const result = await this.#connection.client.callTool(params, { timeout: INSTALL_MS });
    this.ms += performance.now() - since;
    this.roundTrips++;
    const texts = (result.content as readonly { readonly text?: string }[])
      .map(({ text = "" }) => text);
    assert.ok(result.isError !== true, texts.join("\n"));
    const written = countTokens(JSON.stringify(params));
    const read = countTokens(texts.join("\n"));
    this.turns.push({ tool: String(args.tool ?? name), written, read });
    this.tokens += written + read;
    return texts[0] ?? "";
  }
}

/**
 * Returns the outputs that the model reads. The answer lacks large outputs, which are read in pages.
 */
async function outputsOf(
  { run, done }: {
    readonly run: string;
    readonly done: Readonly<Record<string, { readonly output?: unknown }>>;
  },
  { reads, client }: { readonly reads: readonly string[]; readonly client: CountingClient },
): Promise<Outputs> {
  const outputs: Record<string, unknown> = {};
  for (const id of reads) {
    const output = done[id]?.output;
    const pages: unknown[] = [];
    for (let next: number | undefined = 0; output === undefined && next !== undefined;) {
      const read = `pml://results/${run}.${id}?offset=${next}`;
      const page = JSON.parse(await client.meta("execute_workflow", { read }));
      pages.push(page.value);
      next = page.next;
    }
    outputs[id] = output ?? joinPages(pages);
  }
  return outputs;
}

/** Joins the pages of an output: elements, characters or members. */
function joinPages(pages: readonly unknown[]): unknown {
  const [first] = pages;
  if (Array.isArray(first)) return pages.flat();
  return typeof first === "string" ? pages.join("") : Object.assign({}, ...pages);
}

function print(costs: readonly Cost[]): void {
  console.log("| job | way | tokens | round trips | time |\n| --- | --- | --- | --- | --- |");
  for (const { job, way, tokens, roundTrips, ms } of costs) {
    console.log(`| ${job} | ${way} | ${tokens} | ${roundTrips} | ${ms.toFixed(0)} ms |`);
  }
}

/** Prints each price with its ratio to the price of listing all tools. */
function printPrices(prices: readonly WayCost[]): void {
  const groups = Map.groupBy(prices, ({ servers }) => servers);
  console.log("\n| servers | tools | way | with a prompt cache | without |");
  console.log("| --- | --- | --- | --- | --- |");
  for (const [servers, all] of groups) {
    for (const { tools, listed, way, cached, uncached } of all) {
      // Ways with a host that defers tools are compared with `full_proxy` on such a host.
      const base = all.find((candidate) =>
        candidate.way === (way.includes("deferred") ? "full_proxy, deferred" : "full_proxy")
      );
      const cell = (cost: number, of = 0) =>
        `${Math.round(cost).toLocaleString("en-US")} (${(cost / of).toFixed(2)})`;
      console.log(
        `| ${servers} | ${tools} (${listed.toLocaleString("en-US")} tokens) | ${way} | ` +
          `${cell(cached, base?.cached)} | ${cell(uncached, base?.uncached)} |`,
      );
    }
  }
}

if (import.meta.main) await main(Deno.args);
