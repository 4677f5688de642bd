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
  "servers" | "catalog" | "judge" | "problem" | "search"
>;

/** A client's request for a list of tools. */
export interface ListedFor {
  readonly rendered: RenderedLists;
  readonly query?: string | undefined;
  /** The tools that were used lately. Lists by an intent contain them. */
  readonly recent?: readonly ToolId[];
  /** The tools that exist for the client; undefined for all. */
  readonly toolset?: Toolset | undefined;
  /** Whether the client shows pages: then it gets the tools with pages, and those for pages alone. */
  readonly showsPages?: boolean;
}

const NOTHING: HybridOptions = {
  exposeMetaTools: true,
  exposeUnderlyingTools: false,
  applySemanticFilter: true,
  maxUnderlyingTools: Infinity,
  semanticThreshold: 0,
  maxTokens: undefined,
  whitelistedTools: [],
  blacklistedTools: [],
};

/** Returns whether a list with these settings has tools of servers. */
export function listsServers(
  settings: ExposureSettings,
  { query, showsPages }: Pick<Selection, "query" | "showsPages">,
): boolean {
  return showsPages === true || hasUnderlying(optionsOf(settings), queryOf(settings, query));
}

/** Returns whether a list with these settings has the tools that match a query or the intent. */
export function isByQuery(settings: ExposureSettings, query: string | undefined): boolean {
  const { exposeUnderlyingTools, applySemanticFilter } = optionsOf(settings);
  return exposeUnderlyingTools && applySemanticFilter && queryOf(settings, query) !== undefined;
}

/**
 * Returns the listed tools, in a fixed order: meta-tools, whitelist and tools with pages by id,
 * tools that were used lately by id, others by rank, tools for pages alone by id.
 */
export async function exposed(
  settings: ExposureSettings,
  host: ExposureHost,
  listed: ListedFor,
): Promise<readonly JsonObject[]> {
  const options = optionsOf(settings);
  const { prefix, longNames } = settings;
  const naming = !prefix ? "own" : longNames ? "long" : "prefixed";
  const query = queryOf(settings, listed.query);
  const tools = await underlying(options, { ...listed, host, query, naming });
  const ownTools = tools.map((entry) => listed.rendered.tool(entry, naming));
  if (!options.exposeMetaTools) return ownTools as unknown as JsonObject[]; // as they came
  const all = metaTools(settings.batchMax);
  const meta = settings.metaTools.map((name) => all[name]);
  return [...meta, ...ownTools] as unknown as JsonObject[];
}

/** Returns the tools by their bare names. Of two with one name, the first by id counts. */
export function bareTools(catalog: Catalog): ReadonlyMap<string, CatalogEntry> {
  return bareIn(catalog.list());
}

const bareIn = memoized((entries: readonly CatalogEntry[]) => {
  const bare = new Map<string, CatalogEntry>();
  for (const entry of entries) {
    const { tool: { name }, server: { isShipped = false } } = entry;
    // Without a prefix PML represents one server, and built-in tools would hide tools of that
    // server.
    if (!isShipped && !bare.has(name)) bare.set(name, entry);
  }
  return bare;
});

/** Returns the options of an exposure: each is a set of the same options. */
function optionsOf({ exposure, semantic, hybrid }: ExposureSettings): HybridOptions {
  switch (exposure) {
    case "meta_only":
      return NOTHING;
    case "semantic":
      return {
        ...NOTHING,
        exposeUnderlyingTools: true,
        maxUnderlyingTools: semantic.most,
        whitelistedTools: hybrid.whitelistedTools,
        semanticThreshold: semantic.threshold,
      };
    case "hybrid":
      return hybrid;
    case "full_proxy":
      return {
        ...NOTHING,
        exposeMetaTools: false,
        exposeUnderlyingTools: true,
        applySemanticFilter: false,
      };
  }
}

function queryOf({ intent }: ExposureSettings, query: string | undefined): string | undefined {
  return [query, intent].find((one) => one !== undefined && /\S/.test(one));
}

/** Returns whether tools are ranked, apart from those that are always listed. */
function isRanked(options: HybridOptions, query: string | undefined): boolean {
  return options.maxUnderlyingTools > 0 && (!options.applySemanticFilter || query !== undefined);
}

function hasUnderlying(options: HybridOptions, query: string | undefined): boolean {
  return options.exposeUnderlyingTools &&
    (isRanked(options, query) || options.whitelistedTools.length > 0);
}

type Selection = ListedFor & {
  readonly host: ExposureHost;
  readonly query: string | undefined;
  readonly naming: Naming;
};

async function underlying(
  options: HybridOptions,
  selection: Selection,
): Promise<readonly CatalogEntry[]> {
  const { host, query, naming, toolset, showsPages = false } = selection;
  const { servers, catalog } = host;
  // No server is started for a list that has none of its tools.
  const isWanted = showsPages || hasUnderlying(options, query);
  if (!isWanted || host.problem() !== undefined) return [];
  await servers.lists.prepare();
  const all = naming === "own" ? [...bareTools(catalog).values()] : catalog.list();
  const listable = all.filter(({ id }) =>
    verdictWithin(toolset, host, id).kind !== "deny" && !covers(options.blacklistedTools, id)
  );
  const forModels = await ofModels(options, selection, listable.filter(isOfModel));
  if (!showsPages) return forModels;
  // The bounds are about tools that models see.
  const { servers: withPages } = appTools(catalog.list());
  const forPages = listable.filter((entry) =>
    !isOfModel(entry) && withPages.has(entry.server.name)
  );
  return [...forModels, ...forPages];
}

function isOfModel({ tool }: CatalogEntry): boolean {
  return isForModel(tool);
}

/** Selects the tools that models see. */
async function ofModels(
  options: HybridOptions,
  selection: Selection,
  listable: readonly CatalogEntry[],
): Promise<readonly CatalogEntry[]> {
  const { query, naming, rendered, showsPages = false } = selection;
  const { applySemanticFilter, whitelistedTools, maxUnderlyingTools: most } = options;
  const hasOthers = hasUnderlying(options, query);
  const cost = (entry: CatalogEntry) => tokensOf(JSON.stringify(rendered.tool(entry, naming)));
  const always = new Set(
    listable.filter(({ id, tool }) =>
      hasOthers && covers(whitelistedTools, id) || showsPages && toolPage(tool) !== undefined
    ),
  );
  if (!hasOthers || !isRanked(options, query)) return [...always];
  if (!applySemanticFilter) return filled(always, listable, { ...options, cost });
  const threshold = options.semanticThreshold;
  const best = await fitting(listable, selection, { limit: most, threshold });
  const recent = recentOf(listable, selection);
  const taken = filled(always, new Set([...recent, ...best]), { ...options, cost });
  if (taken.length >= most || best.length < most) return taken;
  // Some tools were too large, so tools with lower scores may use the remaining tokens.
  const more = await fitting(listable, selection, { limit: Infinity, threshold });
  return filled(always, new Set([...recent, ...best, ...more]), { ...options, cost });
}

/** Returns the tools that were used lately, by id: an intent names few of those that work needs. */
function recentOf(
  listable: readonly CatalogEntry[],
  { recent }: Selection,
): readonly CatalogEntry[] {
  const ids = new Set(recent);
  return listable.filter(({ id }) => ids.has(id));
}

/** Returns the tools that match the query, the best first. */
async function fitting(
  listable: readonly CatalogEntry[],
  { host, query = "" }: Selection,
  { limit, threshold }: { readonly limit: number; readonly threshold: number },
): Promise<readonly CatalogEntry[]> {
  // The catalog has no tools of registry offers, so none of them is listed.
  const entries = new Map(listable.map((entry) => [entry.id, entry]));
  const allowed = (id: ToolId) => entries.has(id);
  const { hits } = await host.search(query, { limit, threshold, offers: false, allowed });
  return hits.flatMap(({ id }) => entries.get(id) ?? []);
}

/** Adds tools in order, as far as the bounds allow. A tool that is too large is skipped. */
function filled(
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
    const own = cost(entry);
    if (always.has(entry) || own > 0 && own > restTokens) continue;
    restTokens -= own;
    chosenTools.push(entry);
  }
  return chosenTools;
}

/**
 * The tools that were used lately, as each connection got them with its first list: a list that
 * changes with every call would cost the client its prompt cache.
 */
export class RecentTools {
  readonly #host: Pick<GatewayHost, "recent">;
  readonly #byOwner = new WeakMap<object, Promise<readonly ToolId[]>>();

  /** Takes the host. It is asked with the first list of each connection. */
  constructor(host: Pick<GatewayHost, "recent">) {
    this.#host = host;
  }

  /** Returns the tools of a client: those of its party if it lives for one request. */
  of({ peer, party }: Pick<Client, "peer" | "party">): Promise<readonly ToolId[]> {
    const owner = peer.isBrief === true ? party : peer;
    const cached = this.#byOwner.get(owner);
    if (cached !== undefined) return cached;
    const tools = this.#host.recent();
    this.#byOwner.set(owner, tools);
    // The next list asks again after a failure.
    tools.catch(() => this.#byOwner.delete(owner));
    return tools;
  }
}
