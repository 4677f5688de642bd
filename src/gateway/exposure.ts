/**
 * Selects the tools of `tools/list`. Exposure decides which tools are listed, and rules decide
 * which may run: a tool that is not listed can still be called by its name.
 *
 * @module
 */

import type { HybridOptions } from "../config/exposure.ts";
import type { JsonObject } from "../core/json.ts";
import { isForModel, toolPage } from "../protocol/apps.ts";
import { memoized } from "../core/memo.ts";
import { covers } from "../core/pattern.ts";
import { tokensOf } from "../core/tokens.ts";
import type { ToolId } from "../core/tool_id.ts";
import { appTools } from "../search/app_tools.ts";
import type { Catalog, CatalogEntry } from "../search/catalog.ts";
import type { Toolset } from "../protocol/toolset.ts";
import type { Client } from "./_clients.ts";
import { type GatewayHost, verdictWithin } from "./options.ts";
import { metaTools } from "./meta_tools.ts";
import type { Naming, RenderedLists } from "./rendered_lists.ts";
import type { ExposureSettings } from "./options.ts";

/** The parts of the gateway that a list of tools comes from. */
export type ExposureHost = Pick<
  GatewayHost,
  "servers" | "catalog" | "judge" | "configProblem" | "search"
>;

/** A client's request for a list of tools. */
export interface ListRequest {
  readonly rendered: RenderedLists;
  readonly query?: string | undefined;
  /** The recently used tools. Lists that are ranked by a query or the intent contain them. */
  readonly recent?: readonly ToolId[];
  /** The tools that the client may use; undefined if it may use all. */
  readonly toolset?: Toolset | undefined;
  /**
   * Whether the client shows pages. Then the list also contains tools with pages, and tools that only
   * pages call.
   */
  readonly showsPages?: boolean;
}

const META_TOOLS_ONLY: HybridOptions = {
  exposeMetaTools: true,
  exposeUnderlyingTools: false,
  applySemanticFilter: true,
  maxUnderlyingTools: Infinity,
  semanticThreshold: 0,
  maxTokens: undefined,
  whitelistedTools: [],
  blacklistedTools: [],
};

/** Returns whether a list with these settings contains tools of servers. */
export function listsServerTools(
  settings: ExposureSettings,
  { query, showsPages }: Pick<Selection, "query" | "showsPages">,
): boolean {
  return showsPages === true || wantsUnderlying(optionsOf(settings), queryOf(settings, query));
}

/**
 * Returns whether a list with these settings contains the tools that match a query or the intent.
 */
export function isRankedByQuery(settings: ExposureSettings, query: string | undefined): boolean {
  const { exposeUnderlyingTools, applySemanticFilter } = optionsOf(settings);
  return exposeUnderlyingTools && applySemanticFilter && queryOf(settings, query) !== undefined;
}

/**
 * Returns the listed tools, in a fixed order: meta-tools; whitelist and tools with pages, by id;
 * recently used tools, by id; other tools, by rank; tools only for pages, by id.
 */
export async function selectTools(
  settings: ExposureSettings,
  host: ExposureHost,
  request: ListRequest,
): Promise<readonly JsonObject[]> {
  const options = optionsOf(settings);
  const { prefix, longNames } = settings;
  const naming = !prefix ? "own" : longNames ? "long" : "prefixed";
  const query = queryOf(settings, request.query);
  const tools = await selectUnderlying(options, { ...request, host, query, naming });
  const ownTools = tools.map((entry) => request.rendered.tool(entry, naming));
  // Definitions of tools are plain JSON.
  if (!options.exposeMetaTools) return ownTools as unknown as JsonObject[];
  const definitions = metaTools(settings.batchMax);
  const meta = settings.metaTools.map((name) => definitions[name]);
  return [...meta, ...ownTools] as unknown as JsonObject[];
}

/** Returns the tools by their bare names. If two have the same name, the first by id wins. */
export function bareTools(catalog: Catalog): ReadonlyMap<string, CatalogEntry> {
  return bareIn(catalog.list());
}

const bareIn = memoized((entries: readonly CatalogEntry[]) => {
  const bare = new Map<string, CatalogEntry>();
  for (const entry of entries) {
    const { tool: { name }, server: { isShipped = false } } = entry;
    // Without a prefix PML represents one server. Built-in tools could hide that server's tools.
    if (!isShipped && !bare.has(name)) bare.set(name, entry);
  }
  return bare;
});

/** Returns the options of `hybrid` that have the same effect as the configured exposure. */
function optionsOf({ exposure, semantic, hybrid }: ExposureSettings): HybridOptions {
  switch (exposure) {
    case "meta_only":
      return META_TOOLS_ONLY;
    case "semantic":
      return {
        ...META_TOOLS_ONLY,
        exposeUnderlyingTools: true,
        maxUnderlyingTools: semantic.most,
        whitelistedTools: hybrid.whitelistedTools,
        semanticThreshold: semantic.threshold,
      };
    case "hybrid":
      return hybrid;
    case "full_proxy":
      return {
        ...META_TOOLS_ONLY,
        exposeMetaTools: false,
        exposeUnderlyingTools: true,
        applySemanticFilter: false,
      };
  }
}

function queryOf({ intent }: ExposureSettings, query: string | undefined): string | undefined {
  return [query, intent].find((text) => text !== undefined && /\S/.test(text));
}

/** Returns whether a list contains ranked tools, in addition to those that are always listed. */
function isRanked(options: HybridOptions, query: string | undefined): boolean {
  return options.maxUnderlyingTools > 0 && (!options.applySemanticFilter || query !== undefined);
}

function wantsUnderlying(options: HybridOptions, query: string | undefined): boolean {
  return options.exposeUnderlyingTools &&
    (isRanked(options, query) || options.whitelistedTools.length > 0);
}

type Selection = ListRequest & {
  readonly host: ExposureHost;
  readonly query: string | undefined;
  readonly naming: Naming;
};

async function selectUnderlying(
  options: HybridOptions,
  selection: Selection,
): Promise<readonly CatalogEntry[]> {
  const { host, query, naming, toolset, showsPages = false } = selection;
  const { servers, catalog } = host;
  // A list without tools of servers starts no server.
  const isWanted = showsPages || wantsUnderlying(options, query);
  if (!isWanted || host.configProblem() !== undefined) return [];
  await servers.lists.prepare();
  const all = naming === "own" ? [...bareTools(catalog).values()] : catalog.list();
  const listable = all.filter(({ id }) =>
    verdictWithin(toolset, host, id).kind !== "deny" && !covers(options.blacklistedTools, id)
  );
  const forModels = await selectForModels(options, selection, listable.filter(isEntryForModel));
  if (!showsPages) return forModels;
  // The limits do not apply to tools that only pages use.
  const { servers: serversWithPages } = appTools(catalog.list());
  const forPages = listable.filter((entry) =>
    !isEntryForModel(entry) && serversWithPages.has(entry.server.name)
  );
  return [...forModels, ...forPages];
}

function isEntryForModel({ tool }: CatalogEntry): boolean {
  return isForModel(tool);
}

/** Selects the tools that models see. */
async function selectForModels(
  options: HybridOptions,
  selection: Selection,
  listable: readonly CatalogEntry[],
): Promise<readonly CatalogEntry[]> {
  const { query, naming, rendered, showsPages = false } = selection;
  const { applySemanticFilter, whitelistedTools, maxUnderlyingTools: maxTools } = options;
  const listsUnderlying = wantsUnderlying(options, query);
  const cost = (entry: CatalogEntry) => tokensOf(JSON.stringify(rendered.tool(entry, naming)));
  const always = new Set(
    listable.filter(({ id, tool }) =>
      listsUnderlying && covers(whitelistedTools, id) || showsPages && toolPage(tool) !== undefined
    ),
  );
  if (!listsUnderlying || !isRanked(options, query)) return [...always];
  if (!applySemanticFilter) return fillUp(always, listable, { ...options, cost });
  const threshold = options.semanticThreshold;
  const best = await findMatches(listable, selection, { limit: maxTools, threshold });
  const recent = selectRecent(listable, selection);
  const selected = fillUp(always, new Set([...recent, ...best]), { ...options, cost });
  if (selected.length >= maxTools || best.length < maxTools) return selected;
  // Some tools were too large, so tools with lower scores may use the remaining tokens.
  const more = await findMatches(listable, selection, { limit: Infinity, threshold });
  return fillUp(always, new Set([...recent, ...best, ...more]), { ...options, cost });
}

/**
 * Returns the recently used tools that may be listed. They complete a ranked list, because an intent
 * alone matches few of the tools that the work needs.
 */
function selectRecent(
  listable: readonly CatalogEntry[],
  { recent }: Selection,
): readonly CatalogEntry[] {
  const ids = new Set(recent);
  return listable.filter(({ id }) => ids.has(id));
}

/** Returns the tools that match the query, the best first. */
async function findMatches(
  listable: readonly CatalogEntry[],
  { host, query = "" }: Selection,
  { limit, threshold }: { readonly limit: number; readonly threshold: number },
): Promise<readonly CatalogEntry[]> {
  // Lists contain no tools of registry offers.
  const entries = new Map(listable.map((entry) => [entry.id, entry]));
  const allowed = (id: ToolId) => entries.has(id);
  const { hits } = await host.search(query, { limit, threshold, offers: false, allowed });
  return hits.flatMap(({ id }) => entries.get(id) ?? []);
}

/**
 * Adds `others` to the tools that are always listed, in order, until the limits are reached. Skips
 * tools that need more than the remaining tokens.
 */
function fillUp(
  always: ReadonlySet<CatalogEntry>,
  others: Iterable<CatalogEntry>,
  { maxUnderlyingTools, maxTokens, cost: tokens }: HybridOptions & {
    /** Estimates the tokens of a tool as it is listed. */
    readonly cost: (entry: CatalogEntry) => number;
  },
): readonly CatalogEntry[] {
  const chosenTools = [...always];
  const cost = (entry: CatalogEntry) => maxTokens === undefined ? 0 : tokens(entry);
  let restTokens = (maxTokens ?? 0) - chosenTools.reduce((sum, entry) => sum + cost(entry), 0);
  for (const entry of others) {
    if (chosenTools.length >= maxUnderlyingTools) break;
    const tokenCount = cost(entry);
    if (always.has(entry) || tokenCount > 0 && tokenCount > restTokens) continue;
    restTokens -= tokenCount;
    chosenTools.push(entry);
  }
  return chosenTools;
}

/**
 * The recently used tools, which stay the same for a connection after its first list. Lists that
 * change with every call would invalidate the client's prompt cache.
 */
export class RecentTools {
  readonly #host: Pick<GatewayHost, "recentTools">;
  readonly #toolsByKey = new WeakMap<object, Promise<readonly ToolId[]>>();

  /** Takes the host, which finds the tools once for each connection. */
  constructor(host: Pick<GatewayHost, "recentTools">) {
    this.#host = host;
  }

  /** Returns the tools for a client; for its whole owner if the client lives for one request. */
  findFor({ peer, owner }: Pick<Client, "peer" | "owner">): Promise<readonly ToolId[]> {
    const key = peer.isBrief === true ? owner : peer;
    const cached = this.#toolsByKey.get(key);
    if (cached !== undefined) return cached;
    const tools = this.#host.recentTools();
    this.#toolsByKey.set(key, tools);
    // The next list asks again after a failure.
    tools.catch(() => this.#toolsByKey.delete(key));
    return tools;
  }
}
