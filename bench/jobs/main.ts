/**
 * Measures five jobs with the reference servers, tool by tool, by a plan and by code:
 * `deno task bench:jobs [--json]`. It installs two packages of npm.
 *
 * Tokens (o200k) are the texts that the model writes and reads, each once. The time is that of all
 * round trips, without the model.
 *
 * @module
 */

import assert from "node:assert/strict";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { connect, type Connection } from "../../tests/kit/client.ts";
import { makeWorkspace, type Workspace } from "../../tests/kit/workspace.ts";
import { type CallTool, type Job, JOBS, type Outputs } from "./jobs.ts";

/** The cost of one job done in one way. */
interface Cost {
  readonly job: string;
  readonly way: string;
  readonly tokens: number;
  readonly roundTrips: number;
  readonly ms: number;
}

/** A way to do a job. Returns the answer. */
type Way = (job: Job, client: Counted) => Promise<string>;

const VERSION = "2026.8.31";
const INSTALL_MS = 180_000;
/** The number of runs, of which the median counts. */
const RUNS = 3;

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
  const client = new Counted(connection);
  // Installs and starts are not counted: they come once, or once a session.
  await client.begin();
  const costs: Cost[] = [];
  for (const job of JOBS) {
    const ends = new Set<string>();
    for (const [way, work] of Object.entries(WAYS)) {
      const runs: Cost[] = [];
      for (let run = 0; run < RUNS; run++) {
        await client.begin();
        const answer = await work(job, client);
        const { tokens, roundTrips, ms } = client;
        runs.push({ job: job.name, way, tokens, roundTrips, ms });
        ends.add(`${answer}\n${job.written ? await Deno.readTextFile(ws.file(job.written)) : ""}`);
      }
      const [, middle] = runs.toSorted((one, other) => one.ms - other.ms);
      if (middle !== undefined) costs.push(middle);
    }
    assert.equal(ends.size, 1, `the ways of "${job.name}" come to different ends`);
  }
  if (args.includes("--json")) console.log(JSON.stringify(costs));
  else print(costs);
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

/** A client that counts what its model would write and read. */
class Counted {
  tokens = 0;
  roundTrips = 0;
  ms = 0;
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Calls a tool of a server by the meta-tool `call`. */
  readonly call: CallTool = (tool, args) => this.meta("call", { tool, arguments: args });

  /** Has the servers ready and the graph empty, and counts from here. */
  async begin(): Promise<void> {
    await this.call("files:list_allowed_directories", {});
    const { entities } = JSON.parse(await this.call("memory:read_graph", {}));
    const entityNames = entities.map(({ name }: { readonly name: string }) => name);
    await this.call("memory:delete_entities", { entityNames });
    // The next child for code is ready a moment after the last.
    await new Promise((resolve) => setTimeout(resolve, 500));
    [this.tokens, this.roundTrips, this.ms] = [0, 0, 0];
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
    this.tokens += countTokens(JSON.stringify(params)) + countTokens(texts.join("\n"));
    return texts[0] ?? "";
  }
}

/**
 * Returns the outputs that are read. A large one stays outside of the answer, and is read in pages.
 */
async function outputsOf(
  { run, done }: {
    readonly run: string;
    readonly done: Readonly<Record<string, { readonly output?: unknown }>>;
  },
  { reads, client }: { readonly reads: readonly string[]; readonly client: Counted },
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
    outputs[id] = output ?? joined(pages);
  }
  return outputs;
}

/** Joins the pages of an output: elements, characters or members. */
function joined(pages: readonly unknown[]): unknown {
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

if (import.meta.main) await main(Deno.args);
