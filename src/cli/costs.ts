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
  /** The number of measured answers. */
  readonly count: number;
  readonly median: number;
  readonly p95: number;
}

/** A tool, and the first line of its description. */
interface ToolLine {
  readonly id: ToolId;
  readonly query: string;
}

/** The maximum number of tools for which an answer of `search` or `schema` is measured. */
const ANSWERS_MAX = 100;
/** The maximum number of queries for which a list is measured. */
const LISTED_MAX = 10;
/** The maximum number of characters of a query. Queries of models are shorter. */
const QUERY_MAX = 300;

/** Measures the costs for clients. Sends nothing. */
export class Costs {
  readonly #app: App;

  /** Takes the app. Measures nothing yet. */
  constructor(app: App) {
    this.#app = app;
  }

  /** Returns the costs of a list; without a query, the list that clients request. */
  async list(options: GatewayOptions, query?: string): Promise<ListCost> {
    const tools = await (await this.#app.gateway()).exposedTools(options, { query });
    // With `full_proxy`, PML's instructions contain those of the servers.
    const instructions = [...this.#app.servers.instructionsIn(options).values()].join("\n");
    const tokens = tokensOf(JSON.stringify(tools)) + tokensOf(instructions);
    return { tools: tools.length, tokens };
  }

  /** Returns the median of the tokens of lists that are requested with a query. */
  async medianWithQueries(options: GatewayOptions): Promise<number> {
    const costs: number[] = [];
    for (const { query } of await this.#toolLines(LISTED_MAX)) {
      costs.push((await this.list(options, query)).tokens);
    }
    return quantile(costs, 0.5);
  }

  /** Returns the costs of answers of `search`, for the descriptions of at most `most` tools. */
  async search(most = ANSWERS_MAX): Promise<AnswerCost> {
    return await this.#answers("search", most, ({ query }) => ({ query }));
  }

  /** Returns the costs of answers of `schema` for one tool. */
  async schema(): Promise<AnswerCost> {
    return await this.#answers("schema", ANSWERS_MAX, ({ id }) => ({ tools: [id] }));
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
    return { count: tokens.length, median: quantile(tokens, 0.5), p95: quantile(tokens, 0.95) };
  }

  /** Requests the tools of all servers, and returns an even selection of those that no rule denies. */
  async #toolLines(most: number): Promise<readonly ToolLine[]> {
    const { servers, catalog, policy } = this.#app;
    await servers.lists.prepare();
    const tools = catalog.list().filter(({ id }) => policy.now.judge(id).kind !== "deny");
    const count = Math.min(most, tools.length);
    return Array.from(
      { length: count },
      (_, index) => tools[Math.floor(index * tools.length / count)],
    )
      .flatMap((entry) => {
        if (entry === undefined) return [];
        const { id, tool } = entry;
        const [line = ""] = (tool.description ?? "").trim().split("\n");
        return { id, query: line.slice(0, QUERY_MAX) || tool.name };
      });
  }
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
}
