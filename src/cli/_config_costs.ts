/**
 * Measures the tokens of each way of listing tools, and shows them as a table.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { type AnswerCost, Costs } from "./costs.ts";
import { gatewayFrom, type GatewayOptions } from "../config/gateway_options.ts";
import type { Exposure } from "../config/exposure.ts";
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
  readonly fit: ModeFit;
  readonly search: AnswerCost;
  readonly schema: AnswerCost;
}

/**
 * The tokens of a list of all tools up to which `full_proxy` costs less than `meta_only`, with a
 * prompt cache and without. They were measured by billing recorded sessions turn by turn.
 */
export const BREAK_EVEN = { cached: 3_400, uncached: 7_000 } as const;

/** Which mode costs less with the present tools. */
export interface ModeFit {
  /** The mode; `cache` if that depends on the prompt cache of the client. */
  readonly mode: "full_proxy" | "meta_only" | "cache";
  readonly full_proxy: number;
  readonly meta_only: number;
  readonly break_even: typeof BREAK_EVEN;
}

/** Compares the lists of all tools and of the meta-tools. */
export async function fitOf(app: App, costs = new Costs(app)): Promise<ModeFit> {
  const { gateway } = app.config();
  const { tokens: full_proxy } = await costs.list({ ...gateway, exposure: "full_proxy" });
  const { tokens: meta_only } = await costs.list({ ...gateway, exposure: "meta_only" });
  const { cached, uncached } = BREAK_EVEN;
  const mode = full_proxy <= cached ? "full_proxy" : full_proxy <= uncached ? "cache" : "meta_only";
  return { mode, full_proxy, meta_only, break_even: BREAK_EVEN };
}

/** Returns which mode costs less, in one line with the command that switches to it. */
export function fitText(
  { mode, full_proxy, meta_only, break_even: { cached, uncached } }: ModeFit,
  exposure: Exposure,
): string {
  const about = (tokens: number) => formatNumber(Math.round(tokens / 100) * 100);
  const preset = mode === "cache" && exposure === "full_proxy" || mode === "meta_only"
    ? "meta_only"
    : "full_proxy";
  const lists = `Listing all tools costs about ${about(full_proxy)} tokens, the meta-tools ` +
    about(meta_only);
  const why = {
    full_proxy: `full_proxy costs less, up to ${formatNumber(cached)}`,
    cache: `full_proxy costs less without a prompt cache, meta_only with one`,
    meta_only: `meta_only costs less, from ${formatNumber(uncached)} in every client`,
  }[mode];
  return `${lists}: ${why}${preset === exposure ? "" : ` (\`pml config --preset ${preset}\`)`}`;
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
    fit: await fitOf(app, costs),
    search: await costs.search(),
    schema: await costs.schema(),
  };
}

/** Returns a table of the costs, with the costs of answers below it. */
export function costsText(
  { catalog, modes, fit, search, schema }: AllCosts,
  exposure: Exposure,
): string {
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
    `  ${fitText(fit, exposure)}`,
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
