/**
 * Finds the tools that fit a query among those of the catalog.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { isToolName, splitToolId, type ToolId } from "../core/tool_id.ts";
import type { Catalog, CatalogEntry, CatalogServer } from "./catalog.ts";
import { makeRanking, type Ranked, type Ranking } from "./lexical.ts";
import type { Semantics } from "./semantics.ts";

const LONGEST_QUERY = 32_768;
const MOST_QUERIES = 5;
const USUAL_LIMIT = 10;
const MOST_HITS = 100;
const MOST_FUSED = 200;
/** The part of the best score from which a tool of another server fits nearly as well. */
const NEARLY = 0.6;

/** Narrows a search. */
export interface SearchOptions {
  /** Only tools of this server. */
  readonly server?: string;
  /** How many hits at most; 10 unless told. */
  readonly limit?: number;
  /** Which tools may be found at all. */
  readonly allowed?: (id: ToolId) => boolean;
  /** The part of the best score that a hit has to have; 0 unless told. */
  readonly threshold?: number;
  /** Whether what registries offer is found, too; true unless told. */
  readonly offers?: boolean;
}

/** A tool that fits. The best hit of a search has the score 1. */
export interface SearchHit {
  /** Its name, `server:tool`. */
  readonly id: ToolId;
  /** How well it fits, from 0 to 1. */
  readonly score: number;
  /** Its definition. */
  readonly tool: ToolDefinition;
  /** Its server. */
  readonly server: CatalogServer;
}

/** What a search found; no hits where nothing fits. */
export interface SearchAnswer {
  /** How it was ranked. */
  readonly mode: "lexical" | "hybrid";
  /** What fits, the best first. */
  readonly hits: readonly SearchHit[];
}

/** What is searched beside the tools that there are. */
export interface SearchOffers {
  /** The tools that registries offer, as they are at each search. */
  readonly catalog: () => Catalog | undefined;
  /** Whether a server of this name is there already, so that the offer of its name is none. */
  readonly isTaken: (server: string) => boolean;
  /** What can tell meanings now, if anything can. */
  readonly semantics?: () => Semantics | undefined;
}

/** Searches the tools of a catalog as it is at each search. */
export class Search {
  readonly #catalog: Catalog;
  readonly #offers: SearchOffers | undefined;
  #lists: readonly (readonly CatalogEntry[])[] = [];
  #entries: readonly CatalogEntry[] = [];
  #ranking: Ranking = () => [];

  /** Opens a search over a catalog; what is in it is read at the first search. */
  constructor(catalog: Catalog, offers?: SearchOffers) {
    this.#catalog = catalog;
    this.#offers = offers;
  }

  /** Gives the tools that fit a query, or several queries at once, the best first. */
  async search(
    query: string | readonly string[],
    options: SearchOptions = {},
  ): Promise<SearchAnswer> {
    const queries = checked(query);
    this.#follow();
    // The catalog may change while the model is asked.
    const [entries, ranking] = [this.#entries, this.#ranking];
    const near = await this.#offers?.semantics?.()?.similarities(queries, entries);
    const ranked = queries.map((text, at) => {
      const cosines = near?.[at];
      const fused = cosines && fusedRanking(ranking, { entries, cosines });
      return this.#rank(text, { ...options, ranking: fused ?? ranking });
    });
    const limit = Math.min(Math.max(options.limit ?? USUAL_LIMIT, 1), MOST_HITS);
    const mode = near === undefined ? "lexical" : "hybrid";
    return { mode, hits: shared(merged(ranked), limit).map(hitOf) };
  }

  #catalogs(): readonly Catalog[] {
    const catalog = this.#offers?.catalog();
    return catalog === undefined ? [this.#catalog] : [this.#catalog, catalog];
  }

  // The catalog gives another list after a change only: many in a row are read once.
  #follow(): void {
    const lists = this.#catalogs().map((catalog) => catalog.list());
    if (lists.every((list, at) => list === this.#lists[at])) return;
    this.#lists = lists;
    this.#entries = lists.flat().sort(byId);
    this.#ranking = makeRanking(this.#entries);
  }

  #rank(
    query: string,
    { server, allowed, ranking }: SearchOptions & { readonly ranking: Ranking },
  ): readonly Ranked[] {
    const may = (entry: CatalogEntry) =>
      (server === undefined || entry.server.name === server) && (allowed?.(entry.id) ?? true) &&
      !(entry.server.isOffer === true && this.#offers?.isTaken(entry.server.name));
    const ranked = ranking(query, may);
    const best = ranked[0]?.score ?? 1;
    const relative = ranked.map(({ entry, score }) => ({ entry, score: score / best }));
    const named = this.#named(query.trim()).filter(may);
    if (named.length === 0) return relative;
    // A tool that is called by its name comes before all that only resemble it.
    const others = relative.filter(({ entry }) => !named.includes(entry));
    return [
      ...named.map((entry) => ({ entry, score: 1 })),
      ...others.map(({ entry, score }) => ({ entry, score: score / 2 })),
    ];
  }

  #named(name: string): readonly CatalogEntry[] {
    const wire = name.replace(/^mcp__.+?__/, "");
    const exact = this.#catalogs().flatMap((catalog) => {
      const id = catalog.byWireName(name) ?? catalog.byWireName(wire);
      // Asking for an id that is none finds nothing.
      return catalog.get(id ?? (name as ToolId)) ?? [];
    });
    if (exact.length > 0) return exact;
    if (!isToolName(name)) return [];
    return this.#lists.flat().filter((each) => splitToolId(each.id).tool === name);
  }
}

/** Ranks by words and by meaning, half and half, each from the worst to the best of this query. */
function fusedRanking(
  ranking: Ranking,
  { entries, cosines }: {
    readonly entries: readonly CatalogEntry[];
    readonly cosines: Float32Array;
  },
): Ranking {
  const least = cosines.reduce((one, other) => Math.min(one, other), 1);
  const span = cosines.reduce((one, other) => Math.max(one, other), -1) - least || 1;
  return (query, allowed) => {
    const lexical = ranking(query, allowed);
    const best = lexical[0]?.score ?? 1;
    const words = new Map(lexical.map(({ entry, score }) => [entry, score / best]));
    const all = entries.map((entry, at) => {
      const meaning = ((cosines[at] ?? least) - least) / span;
      return { entry, score: ((words.get(entry) ?? 0) + meaning) / 2 };
    }).sort((a, b) => b.score - a.score);
    const taken: Ranked[] = [];
    for (const one of all) {
      if (taken.length >= MOST_FUSED) break;
      if (allowed(one.entry)) taken.push(one);
    }
    return taken;
  };
}

function checked(query: string | readonly string[]): readonly string[] {
  const queries = typeof query === "string" ? [query] : query;
  if (queries.length > MOST_QUERIES) {
    throw new PmlError("BAD_ARGUMENTS", `Cannot search: ${queries.length} queries were given`, {
      hint: `Give at most ${MOST_QUERIES} queries`,
    });
  }
  const longest = Math.max(0, ...queries.map((text) => text.length));
  if (longest > LONGEST_QUERY) {
    throw new PmlError("INPUT_TOO_LARGE", `Cannot search: a query has ${longest} characters`, {
      hint: `Say it in at most ${LONGEST_QUERY} characters`,
    });
  }
  return queries;
}

function merged(ranked: readonly (readonly Ranked[])[]): readonly Ranked[] {
  const [only, ...others] = ranked;
  if (others.length === 0) return only ?? [];
  const best = new Map<ToolId, Ranked>();
  for (const hit of ranked.flat()) {
    const known = best.get(hit.entry.id);
    if (!known || known.score < hit.score) best.set(hit.entry.id, hit);
  }
  return [...best.values()].sort((a, b) => b.score - a.score || (a.entry.id < b.entry.id ? -1 : 1));
}

/** Takes the best, but of one server no more than half while tools of others fit nearly as well. */
function shared(ranked: readonly Ranked[], limit: number): readonly Ranked[] {
  const fitting = (ranked[0]?.score ?? 0) * NEARLY;
  const most = Math.ceil(limit / 2);
  const taken = new Map<string, number>();
  const first = ranked.filter(({ entry, score }) => {
    const count = (taken.get(entry.server.name) ?? 0) + 1;
    taken.set(entry.server.name, count);
    return score >= fitting && count <= most;
  }).slice(0, limit);
  const chosen = new Set(first);
  for (const hit of ranked) {
    if (chosen.size >= limit) break;
    chosen.add(hit);
  }
  return ranked.filter((hit) => chosen.has(hit));
}

function hitOf({ entry, score }: Ranked): SearchHit {
  return {
    id: entry.id,
    score: Math.round(score * 1_000) / 1_000,
    tool: entry.tool,
    server: entry.server,
  };
}

function byId(a: CatalogEntry, b: CatalogEntry): number {
  return a.id < b.id ? -1 : 1;
}
