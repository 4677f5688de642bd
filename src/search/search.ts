/**
 * Finds the tools that fit a query among those of the catalog.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { memoized } from "../core/memo.ts";
import type { ToolDefinition } from "../core/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Catalog, CatalogEntry, CatalogServer } from "./catalog.ts";
import { fused, leastCosine, UNRELATED } from "./_fusing.ts";
import { picked, type Ranked, shared } from "./_picking.ts";
import { type Evidence, LexicalIndex } from "./lexical.ts";
import type { Semantics } from "./semantics.ts";

const LONGEST_QUERY = 32_768;
const MOST_QUERIES = 5;
const USUAL_LIMIT = 10;
const MOST_HITS = 10_000;
/** How many tools are ranked at least, twice what is shown usually, and how many of one server. */
const LEAST_RANKED = 200;
/** What the score of a tool is worth that nobody has approved yet. */
const OFFER_WORTH = 0.9;
/** How many of the best are looked at to tell whether anything fits. */
const LOOKED_AT = 3;
/** A tool that has this part of a query's words fits, whatever they say. */
const COVERED = 0.5;
/** Below this nothing fits; both were measured on real queries, with and without an answer. */
const FITS = 0.25;
/** Below this what is found fits loosely. */
const FITS_WELL = 0.4;

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
  /** The queries that nothing fits. */
  readonly unmet: readonly string[];
  /** Whether what was found fits no query well. */
  readonly isLoose: boolean;
}

/** What is searched beside the tools that there are, and what helps. */
export interface SearchParts {
  /** The tools that registries offer, as they are at each search. */
  readonly catalog?: () => Catalog | undefined;
  /** Whether a server of this name is there already, so that the offer of its name is none. */
  readonly isTaken?: (server: string) => boolean;
  /** Understands meanings, where there is a model that can. */
  readonly semantics?: () => Semantics | undefined;
}

/** How one query is answered. */
interface Finding {
  readonly limit: number;
  readonly may: (entry: CatalogEntry) => boolean;
  readonly near: Near | undefined;
}

/** What one query found. */
interface Found {
  readonly ranked: readonly Ranked[];
  readonly fit: "none" | "loosely" | "well";
}

/** How near each tool is to a query in meaning, and from where on that says anything. */
interface Near {
  readonly cosines: Float32Array;
  readonly least: number;
}

/** Searches the tools of a catalog as it is at each search. */
export class Search {
  readonly #catalog: Catalog;
  readonly #parts: SearchParts;
  readonly #index = new LexicalIndex();
  /** From where on a cosine says anything, for one list of tools and one model. */
  #least: { readonly of: object; readonly by: Semantics; readonly value: number } | undefined;
  #lists: readonly (readonly CatalogEntry[])[] = [];
  #entries: readonly CatalogEntry[] = [];
  /** Those that are there, of which a model is asked: what registries offer goes by words alone. */
  #own: readonly CatalogEntry[] = [];
  /** All by the names that they have on their servers. */
  #byName: ReadonlyMap<string, readonly CatalogEntry[]> = new Map();
  /** Where those stand that registries offer. */
  #offered: readonly number[] = [];

  /** Opens a search over a catalog; what is in it is read at the first search. */
  constructor(catalog: Catalog, parts: SearchParts = {}) {
    this.#catalog = catalog;
    this.#parts = parts;
  }

  /** Gives the tools that fit a query, or several queries at once, the best first. */
  async search(
    query: string | readonly string[],
    options: SearchOptions = {},
  ): Promise<SearchAnswer> {
    const queries = checked(query);
    this.#follow();
    const near = await this.#meant(queries);
    // The rules take longer than all the rest: each tool is judged once, whatever is asked.
    const may = memoized((entry: CatalogEntry) => this.#mayBeFound(entry, options));
    const { limit: wanted = USUAL_LIMIT, threshold = 0 } = options;
    const limit = Math.min(Math.max(wanted, 1), MOST_HITS);
    const found = queries.map((text, at) => this.#find(text, { limit, may, near: near?.[at] }));
    const fitting = found.map(({ ranked }) => ranked.filter(({ score }) => score >= threshold));
    const hits = inTurn(fitting.map((ranked) => shared(ranked, limit)), limit);
    return {
      mode: near === undefined ? "lexical" : "hybrid",
      hits: hits.map(hitOf),
      unmet: queries.filter((_, at) => found[at]?.ranked.length === 0),
      isLoose: hits.length > 0 && found.every(({ fit }) => fit !== "well"),
    };
  }

  #catalogs(): readonly Catalog[] {
    const catalog = this.#parts.catalog?.();
    return catalog === undefined ? [this.#catalog] : [this.#catalog, catalog];
  }

  // The catalog gives another list after a change only: many in a row are read once.
  #follow(): void {
    const lists = this.#catalogs().map((catalog) => catalog.list());
    if (
      lists.length === this.#lists.length && lists.every((list, at) => list === this.#lists[at])
    ) {
      return;
    }
    this.#lists = lists;
    this.#entries = lists.flat().sort(byId);
    this.#own = this.#entries.filter(({ server }) => server.isOffer !== true);
    this.#offered = this.#entries.flatMap(({ server }, at) => server.isOffer === true ? at : []);
    this.#byName = Map.groupBy(this.#entries, ({ tool }) => tool.name);
    this.#index.set(this.#entries);
  }

  /** Asks the model how near the tools are to the queries; nothing where it cannot tell yet. */
  async #meant(queries: readonly string[]): Promise<readonly Near[] | undefined> {
    const [entries, own] = [this.#entries, this.#own];
    const by = this.#parts.semantics?.();
    const similar = await by?.similarities(queries, own);
    if (by === undefined || similar === undefined) return undefined;
    if (this.#least?.of !== own || this.#least.by !== by) {
      const unrelated = await by.similarities(UNRELATED, own);
      if (unrelated === undefined) return undefined;
      this.#least = { of: own, by, value: leastCosine(unrelated) };
    }
    // The catalog may have changed meanwhile: numbers of another list say nothing of this one.
    if (entries !== this.#entries) return undefined;
    const { value: least } = this.#least;
    return similar.map((cosines) => ({ cosines: this.#placed(cosines), least }));
  }

  /** Puts what is known of the tools that are there among all; nobody knows it of the others. */
  #placed(cosines: Float32Array): Float32Array {
    if (this.#own.length === this.#entries.length) return cosines;
    let next = 0;
    return Float32Array.from(
      this.#entries,
      ({ server }) => server.isOffer === true ? NaN : cosines[next++] ?? NaN,
    );
  }

  #mayBeFound(
    { id, server: { name, isOffer = false } }: CatalogEntry,
    { server, allowed, offers = true }: SearchOptions,
  ): boolean {
    return (server === undefined || name === server) &&
      !(isOffer && (!offers || this.#parts.isTaken?.(name))) && (allowed?.(id) ?? true);
  }

  #find(query: string, { limit, may, near }: Finding): Found {
    const most = Math.max(LEAST_RANKED, 2 * limit);
    const picking = { most, mostOfServer: most / 2, allowed: may };
    const { scores, evidence } = this.#index.rank(query);
    const all = near && /\S/.test(query)
      ? fused(scores, near.cosines, this.#entries.map(may))
      : scores;
    for (const slot of this.#offered) all[slot] = (all[slot] ?? 0) * OFFER_WORTH;
    const ranked = relative(picked(this.#entries, all, picking));
    const named = this.#named(query.trim()).filter(may);
    if (named.length > 0) return { ranked: first(named, ranked), fit: "well" };
    const looked = ranked.slice(0, LOOKED_AT);
    const said = best(looked.map(({ slot }) => evidence(slot)));
    const isNear = near !== undefined &&
      looked.some(({ slot }) => (near.cosines[slot] ?? -1) >= near.least);
    const fit = fitOf(said, isNear);
    return { ranked: fit === "none" ? [] : ranked, fit };
  }

  #named(name: string): readonly CatalogEntry[] {
    const wire = name.replace(/^mcp__.+?__/, "");
    const exact = this.#catalogs().flatMap((catalog) => {
      const id = catalog.byWireName(name) ?? catalog.byWireName(wire);
      // Asking for an id that is none finds nothing.
      return catalog.get(id ?? (name as ToolId)) ?? [];
    });
    if (exact.length > 0) return exact;
    return this.#byName.get(name) ?? [];
  }
}

/** What words or meaning alone say counts little; both together count. */
function fitOf(said: Evidence, isNear: boolean): Found["fit"] {
  if (fits(said, isNear ? FITS : FITS_WELL)) return "well";
  return isNear || fits(said, FITS) ? "loosely" : "none";
}

function fits({ covered, said }: Evidence, least: number): boolean {
  return covered >= COVERED || said >= least;
}

function best(all: readonly Evidence[]): Evidence {
  return all.reduce((one, other) => ({
    covered: Math.max(one.covered, other.covered),
    said: Math.max(one.said, other.said),
  }), { covered: 0, said: 0 });
}

/** The best hit of a query has the score 1. */
function relative(ranked: readonly Ranked[]): readonly Ranked[] {
  const best = ranked[0]?.score ?? 1;
  return ranked.map((one) => ({ ...one, score: one.score / best }));
}

/** A tool that is called by its name comes before all that only resemble it. */
function first(named: readonly CatalogEntry[], ranked: readonly Ranked[]): readonly Ranked[] {
  const others = ranked.filter(({ entry }) => !named.includes(entry));
  return [
    ...named.map((entry) => ({ entry, slot: -1, score: 1 })),
    ...others.map((one) => ({ ...one, score: one.score / 2 })),
  ];
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

/** Takes the best of each query in turn, so that none keeps the others out; the best of all first. */
function inTurn(ranked: readonly (readonly Ranked[])[], limit: number): readonly Ranked[] {
  const taken = new Map<ToolId, Ranked>();
  const longest = Math.max(0, ...ranked.map(({ length }) => length));
  for (let at = 0; at < longest; at++) {
    for (const hit of ranked.flatMap((one) => one[at] ?? [])) {
      const known = taken.get(hit.entry.id);
      const isBetter = known === undefined ? taken.size < limit : known.score < hit.score;
      if (isBetter) taken.set(hit.entry.id, hit);
    }
  }
  return [...taken.values()].sort((a, b) =>
    b.score - a.score || (a.entry.id < b.entry.id ? -1 : 1)
  );
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
