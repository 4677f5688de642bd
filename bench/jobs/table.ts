/**
 * Computes the price of the jobs with more and more servers, for each way of listing their tools.
 *
 * @module
 */

import assert from "node:assert/strict";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { App } from "../../src/app/app.ts";
import type { Exposure, MetaTool } from "../../src/config/exposure.ts";
import { META_TOOLS } from "../../src/config/exposure.ts";
import { Cancellation } from "../../src/core/cancellation.ts";
import { type JsonObject, objectOf, textOf } from "../../src/core/json.ts";
import { shownId, wireName } from "../../src/core/tool_id.ts";
import { instructions } from "../../src/gateway/instructions.ts";
import { NO_CLIENT } from "../../src/protocol/call.ts";
import { ToolNames } from "../../src/servers/lists/tool_names.ts";
import { toolsIn } from "../answers.ts";
import { listTools, type Row, withApp } from "../catalog.ts";
import { costOf, type Turn } from "./billing.ts";

/** The measured turns of a job: with single calls, and with code. */
export interface MeasuredJob {
  readonly name: string;
  /** The calls of tools with the meta-tool `call`. */
  readonly calls: readonly (Turn & { readonly tool: string })[];
  readonly code: readonly Turn[];
}

/** The cost of all jobs in input tokens, in one way. */
export interface WayCost {
  readonly servers: number;
  /** The number of their tools, and the tokens of the list of all tools. */
  readonly tools: number;
  readonly listed: number;
  readonly way: string;
  readonly cached: number;
  readonly uncached: number;
}

/** The prompt of a host, the request of the user, and the answer, in tokens. */
const HOST = 20_000;
const REQUEST = 60;
const ANSWER = 60;
/** The additional tokens of the meta-tool `call` in a call of a tool. */
const CALL_OVERHEAD = 12;
/** The search tool of a host that defers tools, in tokens. */
const HOST_SEARCH = 350;
/** The names that the jobs use for servers of the catalog. */
const NAMES_IN_CATALOG: Readonly<Record<string, string>> = { filesystem: "files" };
/** The names that the jobs use for tools of an older version of a server in the catalog. */
const TOOLS_IN_CATALOG: Readonly<Record<string, string>> = {
  "filesystem:read_file": "read_text_file",
};
const JOB_SERVERS = ["files", "memory"];
const SERVER_COUNTS = [1, 5, 13, 40];
/** The search query of a model for each tool that the jobs need. */
const PHRASES: Readonly<Record<string, string>> = {
  "files:list_directory": "list the files of a folder",
  "files:read_text_file": "read a text file",
  "files:write_file": "write a text file",
  "memory:create_entities": "add entities to the knowledge graph",
  "memory:create_relations": "add relations to the knowledge graph",
  "memory:search_nodes": "search the knowledge graph",
};

/** A way to list tools and to find them. */
interface Way {
  readonly name: string;
  readonly exposure: Exposure;
  /** Whether the host defers tools and has its own search. */
  readonly isDeferred?: boolean;
  /** Whether each step has its own search, which misses its tool as often as measured. */
  readonly isByStep?: boolean;
  readonly isCode?: boolean;
}

const WAYS: readonly Way[] = [
  { name: "full_proxy", exposure: "full_proxy" },
  { name: "meta_only", exposure: "meta_only" },
  { name: "meta_only, a search a step", exposure: "meta_only", isByStep: true },
  { name: "meta_only, code", exposure: "meta_only", isCode: true },
  { name: "full_proxy, deferred", exposure: "full_proxy", isDeferred: true },
  {
    name: "full_proxy, deferred, a search a step",
    exposure: "full_proxy",
    isDeferred: true,
    isByStep: true,
  },
  { name: "meta_only, deferred", exposure: "meta_only", isDeferred: true },
  {
    name: "meta_only, deferred, a search a step",
    exposure: "meta_only",
    isDeferred: true,
    isByStep: true,
  },
];

/** Returns the costs in all ways. `recall` is the share of steps whose tool one search finds. */
export async function costsOf(
  jobs: readonly MeasuredJob[],
  { rows, recall }: { readonly rows: readonly Row[]; readonly recall: number },
): Promise<readonly WayCost[]> {
  const costs: WayCost[] = [];
  for (const count of SERVER_COUNTS) {
    await withApp({}, async (app) => {
      const byWay = new Map<string, WayCost[]>();
      for (const job of jobs) {
        const needed = [...new Set(job.calls.map(({ tool }) => tool.split(":")[0] ?? ""))];
        const servers = await listServers(app, { rows, needed, count });
        for (const way of WAYS) {
          const cost = await new JobPrice(app, { job, recall }).costIn(way);
          byWay.set(way.name, [...byWay.get(way.name) ?? [], { ...cost, servers }]);
        }
      }
      for (const [way, all] of byWay) {
        const sum = (of: (cost: WayCost) => number) =>
          all.reduce((total, cost) => total + of(cost), 0);
        costs.push({
          servers: count,
          tools: Math.round(sum(({ tools }) => tools) / all.length),
          listed: Math.round(sum(({ listed }) => listed) / all.length),
          way,
          cached: Math.round(sum(({ cached }) => cached)),
          uncached: Math.round(sum(({ uncached }) => uncached)),
        });
      }
    });
  }
  return costs;
}

/**
 * Lists the servers that a job needs, and others in the order of the catalog, `count` in total. Returns
 * the number of servers.
 */
async function listServers(
  app: App,
  { rows, needed, count }: {
    readonly rows: readonly Row[];
    readonly needed: readonly string[];
    readonly count: number;
  },
): Promise<number> {
  const renamed = rows.map((row) => ({
    ...row,
    server: NAMES_IN_CATALOG[row.server] ?? row.server,
    tool: TOOLS_IN_CATALOG[`${row.server}:${row.tool}`] ?? row.tool,
  }));
  const others = [...new Set(renamed.map(({ server }) => server))]
    .filter((server) => !JOB_SERVERS.includes(server));
  // For a count of one, uses the servers that the job needs, which are two for one job.
  const chosen = new Set([...needed, ...JOB_SERVERS.filter(() => count > 1), ...others]);
  const servers = [...chosen].slice(0, Math.max(count, needed.length));
  await listTools(app, renamed.filter(({ server }) => servers.includes(server)));
  return servers.length;
}

/** The price of one job with the present servers. */
class JobPrice {
  readonly #app: App;
  readonly #job: MeasuredJob;
  readonly #recall: number;
  /** The tools that the job needs. */
  readonly #needed: readonly string[];
  readonly #names: ToolNames;

  constructor(
    app: App,
    { job, recall }: { readonly job: MeasuredJob; readonly recall: number },
  ) {
    this.#app = app;
    this.#job = job;
    this.#recall = recall;
    this.#needed = [...new Set(job.calls.map(({ tool }) => tool))];
    this.#names = new ToolNames(app);
    const missing = this.#needed.filter((tool) =>
      !app.catalog.list().some(({ id }) => id === tool)
    );
    assert.deepEqual(missing, [], "the catalog has the tools of the jobs");
  }

  /** Returns the cost of the job in a way. */
  async costIn(way: Way): Promise<WayCost> {
    await this.#names.write();
    const listedTools = await this.#listTools(way.exposure);
    const start = REQUEST + this.#instructionTokens(way.exposure) +
      (way.isDeferred ? this.#deferredTokens(listedTools) : tokensIn(listedTools));
    const overhead = way.exposure === "full_proxy" ? CALL_OVERHEAD : 0;
    const work = way.isCode ? this.#job.code : roundsOf(this.#job.calls, overhead);
    // If only some sessions need one more search, the cost is a weighted mean.
    const costs = (hasCache: boolean, finding: readonly Turn[]) =>
      costOf({ host: HOST, start, turns: [...finding, ...work], answer: ANSWER }, { hasCache });
    const { least, most, share } = await this.#findingTurns(way);
    const cost = (hasCache: boolean) =>
      costs(hasCache, least) * (1 - share) + costs(hasCache, most) * share;
    return {
      servers: 0,
      tools: this.#app.catalog.list().length,
      listed: tokensIn(await this.#listTools("full_proxy")),
      way: way.name,
      cached: cost(true),
      uncached: cost(false),
    };
  }

  /**
   * Returns the turns that find the tools (`least`), and the turns of sessions that need one more
   * search (`most`). `share` is the share of these sessions.
   */
  async #findingTurns(
    { exposure, isDeferred = false, isByStep = false, isCode = false }: Way,
  ): Promise<
    { readonly least: readonly Turn[]; readonly most: readonly Turn[]; readonly share: number }
  > {
    const always = (least: readonly Turn[]) => ({ least, most: least, share: 0 });
    if (exposure === "full_proxy") {
      if (!isDeferred) return always([]);
      return always(
        isByStep
          ? this.#needed.map((tool) => this.#hostSearch([tool]))
          : [this.#hostSearch(this.#needed)],
      );
    }
    if (!isByStep) {
      const turns = await this.#findTools(this.#needed);
      return always(isCode ? [...turns, await this.#declarations()] : turns);
    }
    const each = (await Promise.all(this.#needed.map((tool) => this.#search([tool])))).flat();
    const more = each.length / this.#recall - each.length;
    const [again = { written: 0, read: 0 }] = each;
    const least = [...each, ...Array.from({ length: Math.floor(more) }, () => again)];
    return { least, most: [...least, again], share: more % 1 };
  }

  /**
   * Returns the turns that find all tools together. Tools in the instructions need no search. They
   * also need no schema if all their required parameters are texts.
   */
  async #findTools(needed: readonly string[]): Promise<readonly Turn[]> {
    const text = this.#instructionText("meta_only");
    if (!text.includes("no search is needed")) return await this.#search(needed);
    const unclear = needed.filter((tool) => !isPlain(text, tool.split(":")[1] ?? ""));
    return unclear.length === 0 ? [] : [await this.#meta("schema", { tools: unclear })];
  }

  /** Returns a search for tools, and a second search by name for tools that the first one misses. */
  async #search(needed: readonly string[]): Promise<readonly Turn[]> {
    const queries = needed.map((tool) => PHRASES[tool] ?? tool);
    const args: JsonObject = queries.length === 1 ? { query: queries[0] ?? "" } : { queries };
    const turn = await this.#meta("search", args);
    const shownTools = toolsIn(turn.text);
    const missed = needed.filter((tool) => !shownTools.has(tool));
    if (missed.length === 0) return [turn];
    return [turn, await this.#meta("search", { queries: missed })];
  }

  async #declarations(): Promise<Turn> {
    return await this.#meta("schema", { tools: [...this.#needed], as: "typescript" });
  }

  async #meta(name: MetaTool, args: JsonObject): Promise<Turn & { readonly text: string }> {
    const calls = await (await this.#app.gateway()).metaCalls();
    const scope = { cancellation: new Cancellation(), client: NO_CLIENT, answer: undefined };
    const outcome = await calls.call(name, { arguments: args, scope });
    assert.ok(outcome.kind === "result");
    const text = outcome.result.content.map(({ text }) => textOf(text)).join("\n");
    const written = countTokens(JSON.stringify({ name, arguments: args }));
    return { written, read: countTokens(text), text };
  }

  /** Returns the turn in which a host selects deferred tools by their names. */
  #hostSearch(needed: readonly string[]): Turn {
    const tools = this.#app.catalog.list().filter((entry) => needed.includes(shownId(entry)));
    const names = tools.map((entry) => `mcp__pml__${wireName(shownId(entry))}`);
    return {
      written: countTokens(JSON.stringify({ query: `select:${names.join(",")}` })) + 10,
      read: tokensIn(tools.map(({ tool }) => objectOf(tool as unknown as JsonObject))),
    };
  }

  /** Returns the tokens of deferred tools: their names, and the search tool of the host. */
  #deferredTokens(listed: readonly JsonObject[]): number {
    const isLoaded = ({ _meta }: JsonObject) => objectOf(_meta)["anthropic/alwaysLoad"] === true;
    const names = listed.filter((tool) => !isLoaded(tool)).map(({ name }) => `mcp__pml__${name}`);
    return HOST_SEARCH + countTokens(names.join("\n")) + tokensIn(listed.filter(isLoaded));
  }

  async #listTools(exposure: Exposure): Promise<readonly JsonObject[]> {
    return await (await this.#app.gateway()).exposedTools({ exposure });
  }

  #instructionTokens(exposure: Exposure): number {
    return countTokens(this.#instructionText(exposure));
  }

  #instructionText(exposure: Exposure): string {
    const { servers } = this.#app;
    const isMeta = exposure === "meta_only";
    return instructions(servers.shownStates(), {
      metaTools: isMeta ? META_TOOLS : [],
      tools: isMeta ? this.#names.modelTools() : undefined,
    });
  }
}

/**
 * Returns the turns of calls. Consecutive calls of one tool are one turn, as models do. Each call is
 * shorter by `overhead` tokens.
 */
function roundsOf(calls: MeasuredJob["calls"], overhead: number): readonly Turn[] {
  const rounds: { tool: string; written: number; read: number }[] = [];
  for (const { tool, written, read } of calls) {
    const last = rounds.at(-1);
    if (last?.tool === tool) {
      last.written += written - overhead;
      last.read += read;
    } else rounds.push({ tool, written: written - overhead, read });
  }
  return rounds;
}

/** Returns whether the instructions contain a tool whose required parameters are all texts. */
function isPlain(text: string, name: string): boolean {
  const [, parameters] = new RegExp(`\\b${name}\\(([^)]*)\\)`).exec(text) ?? [];
  return parameters?.split(",").every((parameter) =>
    !parameter.includes(":") || parameter.includes("?:")
  ) === true;
}

/** Returns the tokens of tools as a host passes them to a model. */
function tokensIn(tools: readonly JsonObject[]): number {
  return countTokens(JSON.stringify(
    tools.map((
      { name, description, inputSchema },
    ) => ({ name, description, inputSchema } as JsonObject)),
  ));
}
