/**
 * What a client would pay in tokens for each way of showing tools, measured over the tools that are
 * there. Every figure is an estimate.
 *
 * @module
 */

import type { GatewayOptions } from "../config/gateway_options.ts";
import type { JsonObject } from "../core/json.ts";
import { textOf } from "../core/json.ts";
import { tokensOf } from "../core/tokens.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { MetaCalls } from "../gateway/meta_calls.ts";
import type { CatalogEntry } from "../search/catalog.ts";
import type { App } from "./app.ts";

/** What the costs are measured with. */
export interface CostsOptions {
  /** Gives the list that a client would get, for a query where there is one. */
  readonly exposed: (
    options: GatewayOptions,
    query?: string,
  ) => Promise<readonly JsonObject[]>;
  /** Gives what answers the meta-tools. */
  readonly metaCalls: () => Promise<MetaCalls>;
  /** Gives every tool that no rule denies. */
  readonly tools: () => readonly CatalogEntry[];
  /** Has servers asked whose tools are unknown. */
  readonly prepare: () => Promise<void>;
}

/** What a list costs. */
export interface ListCost {
  readonly tools: number;
  readonly tokens: number;
}

/** What answers cost. */
export interface AnswerCost {
  /** How many were measured. */
  readonly count: number;
  readonly median: number;
  readonly p95: number;
}

/** The most tools whose own words are searched for. */
const ASKED_MAX = 100;
/** The most queries that a list is made for. */
const LISTED_MAX = 10;

/** Measures what clients would pay; nothing is told to any. */
export class Costs {
  readonly #options: CostsOptions;

  /** Takes what they are measured with; nothing is asked yet. */
  constructor(options: CostsOptions) {
    this.#options = options;
  }

  /** Gives what a list costs that is asked for without a query, as clients do. */
  async list(options: GatewayOptions): Promise<ListCost> {
    return costOf(await this.#options.exposed(options));
  }

  /** Gives what a list costs in the middle where a query comes with it. */
  async queried(options: GatewayOptions): Promise<ListCost> {
    await this.#options.prepare();
    const costs: ListCost[] = [];
    for (const { query } of this.#asked(LISTED_MAX)) {
      costs.push(costOf(await this.#options.exposed(options, query)));
    }
    const [tools, tokens] = (["tools", "tokens"] as const)
      .map((key) => partOf(costs.map((cost) => cost[key]), 0.5));
    return { tools: tools ?? 0, tokens: tokens ?? 0 };
  }

  /** Gives what answers of `search` cost that look for the words of tools, at most so many. */
  async search(most = ASKED_MAX): Promise<AnswerCost> {
    return await this.#answers("search", most, ({ query }) => ({ query }));
  }

  /** Gives what answers of `schema` for one tool cost. */
  async schema(most = ASKED_MAX): Promise<AnswerCost> {
    return await this.#answers("schema", most, ({ id }) => ({ tools: [id] }));
  }

  async #answers(
    name: "search" | "schema",
    most: number,
    argumentsOf: (asked: Asked) => JsonObject,
  ): Promise<AnswerCost> {
    await this.#options.prepare();
    const metaCalls = await this.#options.metaCalls();
    const never = new AbortController().signal;
    const tokens: number[] = [];
    for (const asked of this.#asked(most)) {
      const request = { arguments: argumentsOf(asked), signal: never, answer: undefined };
      const outcome = await metaCalls.call(name, request);
      if (outcome.kind !== "result") continue;
      const texts = outcome.result.content.map(({ text }) => tokensOf(textOf(text)));
      tokens.push(texts.reduce((sum, each) => sum + each, 0));
    }
    return { count: tokens.length, median: partOf(tokens, 0.5), p95: partOf(tokens, 0.95) };
  }

  /** Tools, spread evenly over all, each with the first line of what is said of it. */
  #asked(most: number): readonly Asked[] {
    const tools = this.#options.tools();
    const count = Math.min(most, tools.length);
    return Array.from({ length: count }, (_, at) => tools[Math.floor(at * tools.length / count)])
      .flatMap((entry) => entry === undefined ? [] : askedOf(entry));
  }
}

/** Measures the costs of a house. */
export function costsOf(app: App): Costs {
  return new Costs({
    exposed: async (options, query) => await (await app.gateway()).exposed(options, { query }),
    metaCalls: async () => await (await app.gateway()).metaCalls(),
    tools: () => app.catalog.list().filter(({ id }) => app.policy.now.judge(id).kind !== "deny"),
    prepare: () => app.servers.prepare(),
  });
}

interface Asked {
  readonly id: ToolId;
  readonly query: string;
}

function askedOf({ id, tool }: CatalogEntry): Asked {
  const [line = ""] = (tool.description ?? "").trim().split("\n");
  return { id, query: line.slice(0, QUERY_MAX) || tool.name };
}

/** Longer lines are no query that anybody asks. */
const QUERY_MAX = 300;

function costOf(tools: readonly JsonObject[]): ListCost {
  return { tools: tools.length, tokens: tokensOf(JSON.stringify(tools)) };
}

function partOf(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
}
