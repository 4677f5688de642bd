/**
 * Measures the tokens of the list of tools with each preset, and shows them as a table.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { type AnswerCost, Costs } from "./costs.ts";
import { gatewayFrom, type GatewayOptions } from "../config/gateway_options.ts";
import type { Exposure } from "../config/exposure.ts";
import { presets } from "../config/presets.ts";
import { withoutUndefined } from "../core/json.ts";

/** The costs of a list with one preset. Every figure is an estimate. */
export interface ModeCost {
  /** The name of the preset, or `now` for the present settings. */
  readonly name: string;
  /** The number of tools in the list. */
  readonly tools: number;
  readonly tokens: number;
  /** The saved share of the cost of listing all tools, from 0 to 1. */
  readonly saves: number;
  /**
   * The median tokens of a list that a client requests with a query; not set if a query does not
   * change the list.
   */
  readonly queried?: number;
}

/** The costs of lists with all presets, and of the answers of `search` and `schema`. */
export interface AllCosts {
  readonly estimated: true;
  /** The number of tools that no deny rule matches, and the number of their servers. */
  readonly catalog: { readonly servers: number; readonly tools: number };
  readonly modes: readonly ModeCost[];
  readonly fit: ModeFit;
  readonly search: AnswerCost;
  readonly schema: AnswerCost;
}

/**
 * The maximum number of tokens of a list of all tools with which `full_proxy` costs less than
 * `meta_only`: in a client with a prompt cache, and in one without. Measured from recorded sessions,
 * by the price of each turn.
 */
export const BREAK_EVEN = { cached: 3_400, uncached: 7_000 } as const;

/** Which mode costs less with the present tools. */
export interface ModeFit {
  /** The cheaper mode; `cache` if it depends on whether the client has a prompt cache. */
  readonly mode: "full_proxy" | "meta_only" | "cache";
  /** The tokens of the list of all tools. */
  readonly full_proxy: number;
  /** The tokens of the list of the meta-tools. */
  readonly meta_only: number;
  readonly break_even: typeof BREAK_EVEN;
}

/** Compares the lists of all tools and of the meta-tools. */
export async function measureFit(app: App, costs = new Costs(app)): Promise<ModeFit> {
  const { gateway } = app.config();
  const { tokens: full_proxy } = await costs.list({ ...gateway, exposure: "full_proxy" });
  const { tokens: meta_only } = await costs.list({ ...gateway, exposure: "meta_only" });
  const { cached, uncached } = BREAK_EVEN;
  const mode = full_proxy <= cached ? "full_proxy" : full_proxy <= uncached ? "cache" : "meta_only";
  return { mode, full_proxy, meta_only, break_even: BREAK_EVEN };
}

/** Returns the exposure that costs less in most clients. */
export function cheaperExposure({ mode }: Pick<ModeFit, "mode">): Exposure {
  // Most clients have a prompt cache. `recommendPreset()` assumes one, too.
  return mode === "full_proxy" ? "full_proxy" : "meta_only";
}

/** Returns which mode costs less, in one line with the command that switches to it. */
export function fitText(
  { mode, full_proxy, meta_only, break_even: { cached, uncached } }: ModeFit,
  exposure: Exposure,
): string {
  const rounded = (tokens: number) => formatNumber(Math.round(tokens / 100) * 100);
  const preset = cheaperExposure({ mode });
  const lists = `Listing all tools costs about ${rounded(full_proxy)} tokens, the meta-tools ` +
    rounded(meta_only);
  const why = {
    full_proxy: `full_proxy costs less, as in every client up to ${formatNumber(cached)} tokens`,
    cache: `full_proxy costs less in a client without a prompt cache, meta_only in one with it`,
    meta_only: `meta_only costs less, as in every client from ${formatNumber(uncached)} tokens`,
  }[mode];
  return `${lists}: ${why}${preset === exposure ? "" : ` (\`pml config --preset ${preset}\`)`}`;
}

/** Measures the present settings and each preset with the known tools. */
export async function measure(app: App): Promise<AllCosts> {
  const costs = new Costs(app);
  const { gateway } = app.config();
  const { tokens: all } = await costs.list({ ...gateway, exposure: "full_proxy" });
  const candidates: (readonly [string, GatewayOptions])[] = [
    ["now", gateway],
    ...(await presets()).map(({ name, overrides }) =>
      [name, gatewayFrom(gateway, overrides)] as const
    ),
  ];
  const modes: ModeCost[] = [];
  for (const [name, options] of candidates) {
    modes.push(await measureMode(name, { options, costs, all }));
  }
  return {
    estimated: true,
    catalog: countCatalog(app),
    modes,
    fit: await measureFit(app, costs),
    search: await costs.search(),
    schema: await costs.schema(),
  };
}

/**
 * Returns a table of the costs, with the costs of answers below it, and a recommendation for the present
 * exposure, if it is given.
 */
export function costsText(
  { catalog, modes, fit, search, schema }: AllCosts,
  exposure?: Exposure,
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
    ...alignColumns(rows),
    ...modes.some(({ queried }) => queried !== undefined)
      ? ["  with a query: the median if a client sends a query, or the workspace has an intent"]
      : [],
    answer("search", search),
    answer("schema", schema),
    ...exposure === undefined ? [] : [`  ${fitText(fit, exposure)}`],
  ].join("\n");
}

/** Returns a number with separators, for a user to read. */
export function formatNumber(value: number): string {
  return value.toLocaleString("en-US");
}

async function measureMode(name: string, { options, costs, all }: {
  readonly options: GatewayOptions;
  readonly costs: Costs;
  readonly all: number;
}): Promise<ModeCost> {
  const { tools, tokens } = await costs.list(options);
  const { exposure, hybrid } = options;
  const usesQuery = exposure === "semantic" ||
    exposure === "hybrid" && hybrid.applySemanticFilter;
  const queried = usesQuery ? await costs.medianWithQueries(options) : undefined;
  const saves = all === 0 ? 0 : Math.max(0, 1 - tokens / all);
  return { name, tools, tokens, saves, ...withoutUndefined({ queried }) };
}

/** Counts the tools that no deny rule matches, and their servers. */
export function countCatalog(app: App): AllCosts["catalog"] {
  const entries = app.catalog.list().filter(({ id }) => app.policy.now.judge(id).kind !== "deny");
  const servers = new Set(entries.map(({ server }) => server.name)).size;
  return { servers, tools: entries.length };
}

/** Aligns the columns of a table: names to the left, numbers to the right. */
function alignColumns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0))
  );
  const cell = (text: string, column: number) =>
    column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0);
  return rows.map((row) => `  ${row.map(cell).join("  ")}`.trimEnd());
}
