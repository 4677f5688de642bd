/**
 * Measures the tokens of each way of listing tools, and shows them as a table.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { type AnswerCost, Costs } from "./costs.ts";
import { gatewayFrom, type GatewayOptions } from "../config/gateway_options.ts";
import { presets } from "../config/presets.ts";
import { defined } from "../core/json.ts";

/** The costs of one way; every figure is an estimate. */
export interface ModeCost {
  /** The name of the preset, or `now` for the present settings. */
  readonly name: string;
  /** The number of tools in the list. */
  readonly tools: number;
  readonly tokens: number;
  /** The share of the cost of all tools that it saves, from 0 to 1. */
  readonly saves: number;
  /**
   * The average tokens of a list that a client asks for with a query; not set if a query changes
   * nothing.
   */
  readonly queried?: number;
}

/** The costs of all ways, and of the answers of `search` and `schema`. */
export interface AllCosts {
  readonly estimated: true;
  /** The number of tools that no deny rule matches, and of their servers. */
  readonly catalog: { readonly servers: number; readonly tools: number };
  readonly modes: readonly ModeCost[];
  readonly search: AnswerCost;
  readonly schema: AnswerCost;
}

/** Measures the present settings and each preset, with the tools that are known. */
export async function measure(app: App): Promise<AllCosts> {
  const costs = new Costs(app);
  const { gateway } = app.config();
  const { tokens: all } = await costs.list({ ...gateway, exposure: "full_proxy" });
  const ways: (readonly [string, GatewayOptions])[] = [
    ["now", gateway],
    ...(await presets()).map(({ name, overrides }) =>
      [name, gatewayFrom(gateway, overrides)] as const
    ),
  ];
  const modes: ModeCost[] = [];
  for (const [name, options] of ways) modes.push(await modeOf(name, { options, costs, all }));
  return {
    estimated: true,
    catalog: countOf(app),
    modes,
    search: await costs.search(),
    schema: await costs.schema(),
  };
}

/** Returns a table of the costs, with the costs of answers below it. */
export function costsText({ catalog, modes, search, schema }: AllCosts): string {
  const { servers, tools } = catalog;
  const rows = [
    ["", "tools", "tokens", "saves", "with a query"],
    ...modes.map(({ name, tools, tokens, saves, queried }) => [
      name,
      formatNumber(tools),
      formatNumber(tokens),
      `${(saves * 100).toFixed(1)} %`,
      queried === undefined ? "" : formatNumber(queried),
    ]),
  ];
  const answer = (name: string, { median, p95, count }: AnswerCost) =>
    `  an answer of ${name}: median ${formatNumber(median)}, p95 ${
      formatNumber(p95)
    } (of ${count})`;
  return [
    `Tokens of a list, estimated over ${formatNumber(tools)} tools of ${servers} servers:`,
    ...aligned(rows),
    answer("search", search),
    answer("schema", schema),
  ].join("\n");
}

/** Returns a number with separators, for a user to read. */
export function formatNumber(value: number): string {
  return value.toLocaleString("en-US");
}

async function modeOf(name: string, { options, costs, all }: {
  readonly options: GatewayOptions;
  readonly costs: Costs;
  readonly all: number;
}): Promise<ModeCost> {
  const { tools, tokens } = await costs.list(options);
  const { exposure, hybrid } = options;
  const fits = exposure === "semantic" || exposure === "hybrid" && hybrid.applySemanticFilter;
  const queried = fits ? await costs.queried(options) : undefined;
  const saves = all === 0 ? 0 : Math.max(0, 1 - tokens / all);
  return { name, tools, tokens, saves, ...defined({ queried }) };
}

/** Counts the servers and tools that the costs are measured with. */
export function countOf(app: App): AllCosts["catalog"] {
  const entries = app.catalog.list().filter(({ id }) => app.policy.now.judge(id).kind !== "deny");
  const servers = new Set(entries.map(({ server }) => server.name)).size;
  return { servers, tools: entries.length };
}

/** Aligns the columns of a table: names to the left, numbers to the right. */
function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0))
  );
  const cell = (text: string, at: number) =>
    at === 0 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0);
  return rows.map((row) => `  ${row.map(cell).join("  ")}`.trimEnd());
}
