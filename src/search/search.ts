/**
 * Finds the tools of the catalog that match a query.
 *
 * @module
 */

import { QUERIES_MAX } from "../config/exposure.ts";
import { PmlError } from "../core/errors.ts";
import { memoized } from "../core/memo.ts";
import { isForModel } from "../protocol/apps.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Catalog, CatalogEntry, CatalogServer } from "./catalog.ts";
import { Examples, type ShippedExamples } from "./examples.ts";
import { type Cosines, fused, leastCosine, UNRELATED } from "./_fusing.ts";
import { bestTools, namesServer, type PickingLimits, type RankedTool, shared } from "./_picking.ts";
import { type Evidence, LexicalIndex } from "./lexical.ts";
import { notesAbout, type SearchNote, ServerNames } from "./notes.ts";
import type { Semantics } from "./semantics.ts";
import { termsOf } from "./terms.ts";
import type { WordVectors } from "./word_vectors.ts";

const LONGEST_QUERY = 32_768;
const USUAL_LIMIT = 10;
const MOST_HITS = 10_000;
/** The least number of tools that are ranked; half of them may come from one server. */
const LEAST_RANKED = 200;
/** The factor for the scores of tools that registries and the cloud offer. */
const OFFER_FACTOR = 0.9;
/** How much the use of a tool may add to its score; the best score of words is 1. */
const USE_GAIN = 0.5;
/** The same for an example that the query repeats. */
const EXAMPLE_GAIN = 0.25;
/** How many tools are compared for `leastCosine`. The rules take too long for more. */
const MOST_COMPARED = 256;
/** The number of best tools that decide whether the query has a match. */
const DECIDING_TOOLS = 3;
/** A tool that has at least this part of a query's words matches, even if the words are common. */
const COVERED_MIN = 0.5;
/**
 * The least specificity (`Evidence`) of a loose match. This value and the next one were measured
 * with real queries: some with a matching tool in the catalog, some without.
 */
const SPECIFICITY_LOOSE = 0.22;
/** The least specificity of a good match. */
const SPECIFICITY_GOOD = 0.4;

/** Options that limit a search. */
export interface SearchOptions {
  /** Searches the tools of this server only. */
  readonly server?: string;
  /** The maximum number of hits; by default 10. */
  readonly limit?: number;
  /** Returns whether a tool may be found. */
  readonly allowed?: (id: ToolId) => boolean;
  /** The least score of a hit, as a part of the best score; by default 0. */
  readonly threshold?: number;
  /** Whether offers of registries are found, too; by default true. */
  readonly offers?: boolean;
  /** The client that searches. Its earlier uses may change the order of its hits. */
  readonly actor?: string;
  /** The memory of how tools were used for queries. */
  readonly memory?: QueryMemory | undefined;
}

/** Remembers the use of tools. */
export interface QueryMemory {
  /** Returns how well tools fit a query by their use, from 0 to 1. */
  fit(query: string): ReadonlyMap<ToolId, number>;
}

/** A tool that matches. The best hit of a search has the score 1. */
export interface SearchHit {
  /** The id, `server:tool`. */
  readonly id: ToolId;
  /** The score, from 0 to 1. */
  readonly score: number;
  /** The part of the query's words that the tool has, from 0 to 1. Rare words count more. */
  readonly covered: number;
  /** The definition. */
  readonly tool: ToolDefinition;
  /** The server. */
  readonly server: CatalogServer;
}

/**
 * How tools are ranked: by words, or also by meaning, with the model that ships with PML (`builtin`)
 * or with the one that the user configured (`hybrid`).
 */
export type SearchMode = "lexical" | "builtin" | "hybrid";

/** The result of a search. It has no hits if nothing matches. */
export interface SearchAnswer {
  /** How the tools were ranked. */
  readonly mode: SearchMode;
  /** The tools that match, the best first. */
  readonly hits: readonly SearchHit[];
  /** The tools that match each query, in the order of the queries; each has up to `limit` hits. */
  readonly byQuery: readonly (readonly SearchHit[])[];
  /** The queries that no tool matches. */
  readonly unmet: readonly string[];
  /** Whether no query has a hit that matches well. */
  readonly isLoose: boolean;
  /**
   * The words that no tool has, or no tool of the server that a query names, and servers that do not
   * exist; at most one note of each kind.
   */
  readonly notes: readonly SearchNote[];
}

/** The optional sources of a search. `Finder` implements it. */
export interface SearchSources {
  /** Returns the tools that registries and the cloud offer. It is called for each search. */
  catalogs?(): readonly Catalog[];
  /**
   * Returns whether a server of this name exists already. Then an offer with its name is ignored.
   */
  isTaken?(server: string): boolean;
  /** Returns the parts that compare meanings. The first one that has vectors is used. */
  semantics?(): readonly Semantics[];
  /** Returns the examples that ship with PML. */
  examples?(): ShippedExamples | undefined;
  /** Returns words of English, which are not corrected. */
  words?(): WordVectors | undefined;
}

/** How one query is searched for. */
interface QuerySearch extends Pick<PickingLimits, "allowed"> {
  readonly limit: number;
  readonly near: Nearness | undefined;
  readonly memory: QueryMemory | undefined;
}

/** A ranked tool, and the part of the query's words that it has. */
interface MatchedTool extends RankedTool {
  readonly covered: number;
}

/** The result of one query. */
interface QueryResult {
  readonly ranked: readonly MatchedTool[];
  readonly fit: "none" | "loosely" | "well";
}

/** The cosines of all tools for a query, and the least cosine of a tool that is related to it. */
interface Nearness extends Cosines {
  readonly least: number;
}

/** The cosines by one model, for each query. */
interface ModelNearness extends Pick<Semantics, "mode"> {
  readonly each: readonly Nearness[];
}

/** Searches the tools of a catalog. */
export class Search {
  readonly #catalog: Catalog;
  readonly #sources: SearchSources;
  readonly #index = new LexicalIndex();
  /** The least cosine of a related tool, cached for one list of tools and one model. */
  #least: { readonly tools: object; readonly model: Semantics; readonly value: number } | undefined;
  #examples: Examples | undefined;
  #lists: readonly (readonly CatalogEntry[])[] = [];
  #entries: readonly CatalogEntry[] = [];
  /** The tools that are not offers. Only these are compared by meaning. */
  #own: readonly CatalogEntry[] = [];
  /** All tools, by their names on their servers. */
  #byName: ReadonlyMap<string, readonly CatalogEntry[]> = new Map();
  #byServer: ReadonlyMap<string, readonly CatalogEntry[]> = new Map();
  #names = new ServerNames([]);
  /** The index of each tool in `#entries`. */
  #slots = new Uint32Array();
  /** The factor for the score of each tool. */
  #factors = new Float64Array();

  /** Takes the catalog. It is read at the first search. */
  constructor(catalog: Catalog, sources: SearchSources = {}) {
    this.#catalog = catalog;
    this.#sources = sources;
  }

  /** Returns the tools that match a query, or several queries, the best first. */
  async search(
    query: string | readonly string[],
    options: SearchOptions = {},
  ): Promise<SearchAnswer> {
    const queries = checked(query);
    this.#readCatalogs();
    const near = await this.#nearness(queries);
    // The rules take longest, so each tool is judged once for all queries.
    const allowed = memoized((entry: CatalogEntry) => this.#mayBeFound(entry, options));
    const { limit: requestedLimit = USUAL_LIMIT, threshold = 0, memory } = options;
    const limit = Math.min(Math.max(requestedLimit, 1), MOST_HITS);
    const results = queries.map((text, at) =>
      this.#find(text, { limit, allowed, near: near?.each[at], memory })
    );
    const fitting = results.map(({ ranked }) => ranked.filter(({ score }) => score >= threshold));
    const byQuery = fitting.map((ranked, at) =>
      shared(ranked, { limit, isWanted: (server) => namesServer(queries[at] ?? "", server) })
    );
    const hits = inTurn(byQuery, limit);
    return {
      mode: near?.mode ?? "lexical",
      hits: hits.map(hitOf),
      byQuery: byQuery.map((ranked) => ranked.map(hitOf)),
      unmet: queries.filter((_, at) => results[at]?.ranked.length === 0),
      isLoose: hits.length > 0 && results.every(({ fit }) => fit !== "well"),
      notes: this.#notes(new Map(queries.map((text, at) => [text, results[at]])), options, allowed),
    };
  }

  #catalogs(): readonly Catalog[] {
    return [this.#catalog, ...this.#sources.catalogs?.() ?? []];
  }

  // Reads the catalogs again if one of them changed: it then returns another list object.
  #readCatalogs(): void {
    const lists = this.#catalogs().map((catalog) => catalog.list());
    if (
      lists.length === this.#lists.length && lists.every((list, at) => list === this.#lists[at])
    ) {
      return;
    }
    this.#lists = lists;
    this.#entries = lists.flat().sort(byId);
    this.#own = this.#entries.filter(({ server }) => server.isOffer !== true);
    this.#slots = Uint32Array.from(this.#entries, (_, at) => at);
    this.#factors = Float64Array.from(
      this.#entries,
      ({ server }) => server.isOffer === true ? OFFER_FACTOR : 1,
    );
    this.#byServer = Map.groupBy(this.#entries, ({ server }) => server.name);
    this.#names = new ServerNames(this.#byServer.keys());
    this.#byName = Map.groupBy(this.#entries, ({ tool }) => tool.name);
    this.#index.set(this.#entries);
  }

  /**
   * Returns how near the tools are to the queries by meaning; undefined while the model has no
   * vectors for them.
   */
  async #nearness(queries: readonly string[]): Promise<ModelNearness | undefined> {
    const [entries, own] = [this.#entries, this.#own];
    for (const model of this.#sources.semantics?.() ?? []) {
      const similar = await model.similarities(queries, own);
      const least = similar === undefined ? undefined : await this.#leastOf(model, own);
      // If the catalog changed meanwhile, the numbers belong to another list.
      if (entries !== this.#entries) return undefined;
      if (similar === undefined || least === undefined) continue;
      const { mode, weight } = model;
      const each = similar.map((cosines) => ({
        cosines: this.#inCatalogOrder(cosines),
        weight,
        least,
      }));
      return { mode, each };
    }
    return undefined;
  }

  /** Returns the least cosine of a tool that is related to a query. */
  async #leastOf(model: Semantics, own: readonly CatalogEntry[]): Promise<number | undefined> {
    if (this.#least?.tools !== own || this.#least.model !== model) {
      const unrelated = await model.similarities(UNRELATED, own);
      if (unrelated === undefined) return undefined;
      this.#least = { tools: own, model, value: leastCosine(unrelated) };
    }
    return this.#least.value;
  }

  /** Puts the cosines into the order of all tools, with NaN for offers. */
  #inCatalogOrder(cosines: Float32Array): Float32Array {
    if (this.#own.length === this.#entries.length) return cosines;
    let next = 0;
    return Float32Array.from(
      this.#entries,
      ({ server }) => server.isOffer === true ? NaN : cosines[next++] ?? NaN,
    );
  }

  #mayBeFound(
    { id, tool, server: { name, isOffer = false } }: CatalogEntry,
    { server, allowed, offers = true }: SearchOptions,
  ): boolean {
    return (server === undefined || name === server) && isForModel(tool) &&
      !(isOffer && (!offers || this.#sources.isTaken?.(name))) && (allowed?.(id) ?? true);
  }

  #find(query: string, { limit, allowed, near, memory }: QuerySearch): QueryResult {
    const most = Math.max(LEAST_RANKED, 2 * limit);
    const { scores, met, terms } = this.#index.rank(query, this.#sources.words?.());
    const isFused = near !== undefined && /\S/.test(query);
    const all = isFused ? this.#fused(scores, near, { met, allowed }) : scores;
    const among = isFused ? this.#slots : met;
    for (const slot of among) all[slot] = (all[slot] ?? 0) * (this.#factors[slot] ?? 1);
    const picking = { among, most, mostOfServer: most / 2, allowed };
    const used = memory?.fit(query) ?? new Map<ToolId, number>();
    const queryTerms = new Set(termsOf(query));
    const examples = this.#examples ??= new Examples(this.#sources.examples?.());
    const preference = ({ entry }: RankedTool) =>
      USE_GAIN * (used.get(entry.id) ?? 0) + EXAMPLE_GAIN * examples.fit(queryTerms, entry);
    const ranked = withPreference(relative(bestTools(this.#entries, all, picking)), preference)
      .map((one) => ({ ...one, covered: this.#index.evidence(one.slot, terms).covered }));
    const named = this.#named(query.trim()).filter(allowed);
    if (named.length > 0) return { ranked: first(named, ranked), fit: "well" };
    const looked = ranked.slice(0, DECIDING_TOOLS);
    const evidence = best(looked.map(({ slot }) => this.#index.evidence(slot, terms)));
    const isNear = near !== undefined &&
      looked.some(({ slot }) => (near.cosines[slot] ?? -1) >= near.least);
    const fit = fitOf(evidence, isNear);
    return { ranked: fit === "none" ? [] : ranked, fit };
  }

  #fused(
    scores: Float64Array,
    near: Nearness,
    { met, allowed }: Pick<PickingLimits, "allowed"> & { readonly met: Uint32Array },
  ): Float64Array {
    const bestOf = (values: Float64Array | Float32Array, among: Uint32Array) => {
      let best = 0;
      for (const slot of among) {
        const value = values[slot] ?? 0;
        const entry = value > best ? this.#entries[slot] : undefined;
        // The rules are checked last, because they take longest.
        if (entry !== undefined && allowed(entry)) best = value;
      }
      return best;
    };
    let [least, judged] = [Infinity, 0];
    for (let slot = 0; slot < this.#entries.length && judged < MOST_COMPARED; slot++) {
      const [entry, cosine] = [this.#entries[slot], near.cosines[slot] ?? NaN];
      if (entry === undefined || Number.isNaN(cosine) || !allowed(entry)) continue;
      least = Math.min(least, cosine);
      judged += 1;
    }
    return fused(scores, near, {
      bestScore: bestOf(scores, met),
      bestCosine: bestOf(near.cosines, this.#slots),
      leastCosine: Math.max(least, 0),
    });
  }

  #notes(
    results: ReadonlyMap<string, QueryResult | undefined>,
    { server }: SearchOptions,
    allowed: (entry: CatalogEntry) => boolean,
  ): readonly SearchNote[] {
    const words = this.#sources.words?.();
    if (words === undefined || this.#entries.length === 0) return [];
    const index = this.#index;
    return notesAbout([...results.keys()], {
      bestServer: (query) => {
        const { ranked: [first], fit } = results.get(query) ?? { ranked: [] };
        return fit === "well" ? first?.entry.server.name : undefined;
      },
      names: this.#names,
      canFind: (name) => this.#byServer.get(name)?.some(allowed) ?? false,
      isServer: (name) => this.#sources.isTaken?.(name) ?? false,
      has: (terms, { server, mayBeWrong }) =>
        index.hasAll(terms, {
          mayBeWrong,
          isAmong: (entry) =>
            (server === undefined || entry.server.name === server) && allowed(entry),
        }),
      isInName: (term) => index.isInName(term),
      isCommon: (term) => words.isCommon(term),
    }, server);
  }

  #named(name: string): readonly CatalogEntry[] {
    const wire = name.replace(/^mcp__.+?__/, "");
    const exact = this.#catalogs().flatMap((catalog) => {
      const id = catalog.byWireName(name) ?? catalog.byWireName(wire);
      // A text that is not an id finds nothing.
      return catalog.get(id ?? (name as ToolId)) ?? [];
    });
    if (exact.length > 0) return exact;
    return this.#byName.get(name) ?? [];
  }
}

/** Returns how well a query is matched. Words or meaning alone count less than both together. */
function fitOf(evidence: Evidence, isNear: boolean): QueryResult["fit"] {
  if (fits(evidence, isNear ? SPECIFICITY_LOOSE : SPECIFICITY_GOOD)) return "well";
  return isNear || fits(evidence, SPECIFICITY_LOOSE) ? "loosely" : "none";
}

function fits({ covered, specificity }: Evidence, least: number): boolean {
  return covered >= COVERED_MIN || specificity >= least;
}

function best(all: readonly Evidence[]): Evidence {
  return all.reduce((one, other) => ({
    covered: Math.max(one.covered, other.covered),
    specificity: Math.max(one.specificity, other.specificity),
  }), { covered: 0, specificity: 0 });
}

/** Scales the scores so that the best one is 1. */
function relative(ranked: readonly RankedTool[]): readonly RankedTool[] {
  const best = ranked[0]?.score ?? 1;
  return ranked.map((one) => ({ ...one, score: one.score / best }));
}

/**
 * Raises the scores of ranked tools that were used for similar queries, or have a similar example.
 * Adds no tools.
 */
function withPreference(
  ranked: readonly RankedTool[],
  gain: (one: RankedTool) => number,
): readonly RankedTool[] {
  const raised = ranked.map((one) => ({ ...one, score: one.score + gain(one) }));
  return relative(raised.sort((one, other) => other.score - one.score));
}

/** Puts the tools whose name is the query before the others. */
function first(
  named: readonly CatalogEntry[],
  ranked: readonly MatchedTool[],
): readonly MatchedTool[] {
  const others = ranked.filter(({ entry }) => !named.includes(entry));
  return [
    ...named.map((entry) => ({ entry, slot: -1, score: 1, covered: 1 })),
    ...others.map((one) => ({ ...one, score: one.score / 2 })),
  ];
}

function checked(query: string | readonly string[]): readonly string[] {
  const queries = typeof query === "string" ? [query] : query;
  if (queries.length > QUERIES_MAX) {
    throw new PmlError("BAD_ARGUMENTS", `Cannot search: ${queries.length} queries were given`, {
      hint: `Give at most ${QUERIES_MAX} queries`,
    });
  }
  const longest = Math.max(0, ...queries.map((text) => text.length));
  if (longest > LONGEST_QUERY) {
    throw new PmlError("INPUT_TOO_LARGE", `Cannot search: a query has ${longest} characters`, {
      hint: `Use at most ${LONGEST_QUERY} characters`,
    });
  }
  return queries;
}

/**
 * Takes the best hits of each query in turn, so that none excludes the others, and sorts them by
 * score.
 */
function inTurn(
  ranked: readonly (readonly MatchedTool[])[],
  limit: number,
): readonly MatchedTool[] {
  const taken = new Map<ToolId, MatchedTool>();
  const longest = Math.max(0, ...ranked.map(({ length }) => length));
  for (let at = 0; at < longest; at++) {
    for (const hit of ranked.flatMap((one) => one[at] ?? [])) {
      const earlier = taken.get(hit.entry.id);
      const isBetter = earlier === undefined ? taken.size < limit : earlier.score < hit.score;
      if (isBetter) taken.set(hit.entry.id, hit);
    }
  }
  return [...taken.values()].sort((a, b) =>
    b.score - a.score || (a.entry.id < b.entry.id ? -1 : 1)
  );
}

function hitOf({ entry, score, covered }: MatchedTool): SearchHit {
  return {
    id: entry.id,
    score: Math.round(score * 1_000) / 1_000,
    covered: Math.round(covered * 100) / 100,
    tool: entry.tool,
    server: entry.server,
  };
}

function byId(a: CatalogEntry, b: CatalogEntry): number {
  return a.id < b.id ? -1 : 1;
}
