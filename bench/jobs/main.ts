/**
 * What five jobs cost done tool by tool, by a plan and by code, over the reference servers:
 * `deno task bench:jobs [--json]`. It installs two packages of npm.
 *
 * Tokens (o200k) are what the model writes and what it reads, each once. The time is that of all
 * round trips together, without the model, which would think before each.
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
/** The median of so many runs is told. */
const RUNS = 3;

const WAYS: Readonly<Record<string, Way>> = {
  "tool by tool": (job, client) => job.direct(client.call),
  plan: async ({ plan: { tasks, finish } }, client) => {
    const answer = JSON.parse(await client.meta("execute_workflow", { plan: { tasks } }));
    return await finish(outputsOf(answer), client.call);
  },
  code: ({ code }, client) => client.meta("execute_code", { code }),
};

if (import.meta.main) await main(Deno.args);

async function main(args: readonly string[]): Promise<void> {
  const costs: Cost[] = [];
  for (const job of JOBS) {
    const ends = new Set<string>();
    for (const way of Object.keys(WAYS)) {
      const runs: Cost[] = [];
      for (let run = 0; run < RUNS; run++) {
        const { cost, end } = await measured(job, way);
        runs.push(cost);
        ends.add(end);
      }
      const [, middle] = runs.toSorted((one, other) => one.ms - other.ms);
      if (middle !== undefined) costs.push(middle);
    }
    assert.equal(ends.size, 1, `the ways of "${job.name}" come to different ends`);
  }
  if (args.includes("--json")) console.log(JSON.stringify(costs));
  else print(costs);
}

/** Does a job in one way, in a fresh workspace. */
async function measured(job: Job, way: string): Promise<{ cost: Cost; end: string }> {
  await using ws = await workspaceOf(job);
  await using connection = await connect(ws);
  const client = new Counted(connection);
  // Starts are not counted: they come once a session.
  await client.warm();
  const answer = await WAYS[way]?.(job, client) ?? "";
  const { tokens, roundTrips, ms } = client;
  const end = `${answer}\n${job.written ? await Deno.readTextFile(ws.file(job.written)) : ""}`;
  return { cost: { job: job.name, way, tokens, roundTrips, ms }, end };
}

async function workspaceOf(job: Job): Promise<Workspace> {
  const server = (name: string, ...args: readonly string[]) => ({
    command: "npx",
    args: ["-y", `@modelcontextprotocol/server-${name}@${VERSION}`, ...args],
  });
  return await makeWorkspace({
    files: job.files,
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

  /** Has the servers started, which is not counted. */
  async warm(): Promise<void> {
    await this.call("files:list_allowed_directories", {});
    await this.call("memory:read_graph", {});
    await this.meta("execute_code", { code: "return 1" });
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

/** Returns the output of each task from the answer of a plan. */
function outputsOf(answer: { readonly tasks: Readonly<Record<string, unknown>> }): Outputs {
  const tasks = Object.entries(answer.tasks) as [string, { readonly output: unknown }][];
  return Object.fromEntries(tasks.map(([id, { output }]) => [id, output]));
}

function print(costs: readonly Cost[]): void {
  console.log("| job | way | tokens | round trips | time |\n| --- | --- | --- | --- | --- |");
  for (const { job, way, tokens, roundTrips, ms } of costs) {
    console.log(`| ${job} | ${way} | ${tokens} | ${roundTrips} | ${ms.toFixed(0)} ms |`);
  }
}
