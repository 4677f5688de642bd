/**
 * The tokens that each way of showing tools costs a client, measured with the present tools. Every
 * figure is an estimate.
 *
 * @module
 */

import type { GatewayOptions } from "../config/gateway_options.ts";
import { NO_CLIENT } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { type JsonObject, textOf } from "../core/json.ts";
import { tokensOf } from "../core/tokens.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { App } from "../app/app.ts";

/** The costs of a list. */
export interface ListCost {
  readonly tools: number;
  readonly tokens: number;
}

/** The costs of answers. */
export interface AnswerCost {
  /** How many were measured. */
  readonly count: number;
  readonly median: number;
  readonly p95: number;
}

/** A tool, and the first line of its description. */
interface ToolLine {
  readonly id: ToolId;
  readonly query: string;
}

/** The maximum number of tools whose own words are searched for. */
const ASKED_MAX = 100;
/** The maximum number of queries that a list is made for. */
const LISTED_MAX = 10;
/** The maximum number of characters of a query: models ask shorter ones. */
const QUERY_MAX = 300;

/** Measures the costs for clients. Sends nothing. */
export class Costs {
  readonly #app: App;

  /** Takes the app; nothing is asked yet. */
  constructor(app: App) {
    this.#app = app;
  }

  /** Returns the costs of a list, without a query as clients request it. */
  async list(options: GatewayOptions, query?: string): Promise<ListCost> {
    const tools = await (await this.#app.gateway()).exposed(options, { query });
    // With `full_proxy` the instructions of servers are in PML's.
    const instructions = [...this.#app.servers.instructionsIn(options).values()].join("\n");
    const tokens = tokensOf(JSON.stringify(tools)) + tokensOf(instructions);
    return { tools: tools.length, tokens };
  }

  /** Returns the tokens of a list in the middle where a query comes with it. */
  async queried(options: GatewayOptions): Promise<number> {
    const costs: number[] = [];
    for (const { query } of await this.#toolLines(LISTED_MAX)) {
      costs.push((await this.list(options, query)).tokens);
    }
    return partOf(costs, 0.5);
  }

  /** Returns the costs of answers of `search` for the words of tools, at most `most` tools. */
  async search(most = ASKED_MAX): Promise<AnswerCost> {
    return await this.#answers("search", most, ({ query }) => ({ query }));
  }

  /** Returns the costs of answers of `schema` for one tool. */
  async schema(): Promise<AnswerCost> {
    return await this.#answers("schema", ASKED_MAX, ({ id }) => ({ tools: [id] }));
  }

  async #answers(
    name: "search" | "schema",
    most: number,
    argumentsOf: (line: ToolLine) => JsonObject,
  ): Promise<AnswerCost> {
    const scope = { cancellation: new Cancellation(), client: NO_CLIENT, answer: undefined };
    const tokens: number[] = [];
    for (const line of await this.#toolLines(most)) {
      const metaCalls = await (await this.#app.gateway()).metaCalls();
      const request = { arguments: argumentsOf(line), scope };
      const outcome = await metaCalls.call(name, request);
      if (outcome.kind !== "result") continue;
      const texts = outcome.result.content.map(({ text }) => tokensOf(textOf(text)));
      tokens.push(texts.reduce((sum, each) => sum + each, 0));
    }
    return { count: tokens.length, median: partOf(tokens, 0.5), p95: partOf(tokens, 0.95) };
  }

  /** Returns tools that no rule denies, spread evenly over all. Servers are asked for theirs first. */
  async #toolLines(most: number): Promise<readonly ToolLine[]> {
    const { servers, catalog, policy } = this.#app;
    await servers.lists.prepare();
    const tools = catalog.list().filter(({ id }) => policy.now.judge(id).kind !== "deny");
    const count = Math.min(most, tools.length);
    return Array.from({ length: count }, (_, at) => tools[Math.floor(at * tools.length / count)])
      .flatMap((entry) => {
        if (entry === undefined) return [];
        const { id, tool } = entry;
        const [line = ""] = (tool.description ?? "").trim().split("\n");
        return { id, query: line.slice(0, QUERY_MAX) || tool.name };
      });
  }
}

function partOf(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
}
