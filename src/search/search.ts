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
import { type Cosines, fuseScores, largestCosine, UNRELATED } from "./_fuse_scores.ts";
import { demoteAliases } from "./_aliases.ts";
import {
  bestTools,
  limitServers,
  namesServer,
  type PickingLimits,
  type RankedTool,
} from "./_best_tools.ts";
import { type Evidence, LexicalIndex, type QueryTerm } from "./lexical.ts";
import { findNotes, type SearchNote, ServerNames } from "./notes.ts";
import type { Semantics } from "./semantics.ts";
import { termsOf } from "./terms.ts";
import type { WordVectors } from "./word_vectors.ts";

const LONGEST_QUERY = 32_768;
const DEFAULT_LIMIT = 10;
const MOST_HITS = 10_000;
/** The least limit of tools that are ranked. Half of the limit may come from one server. */
const LEAST_RANKED = 200;
/** The factor of the scores of tools that registries and the cloud offer. */
const OFFER_FACTOR = 0.9;
/** The maximum that the use of a tool adds to its score. The best score of words is 1. */
const USE_GAIN = 0.5;
/** The maximum that a similar example of a tool adds to its score. */
const EXAMPLE_GAIN = 0.25;
/**
 * The maximum number of tools that are compared for `leastCosine`, because checking the rules takes
 * long.
 */
const MOST_COMPARED = 256;
/** The number of best tools that decide whether the query has a match. */
const DECIDING_COUNT = 3;
/** A tool that has at least this part of a query's words matches, even if the words are common. */
const COVERED_MIN = 0.5;
/**
 * The least specificity (`Evidence`) of a loose match. This value and the next one were measured
 * with real queries: some with a matching tool in the catalog, some without.
 */
const SPECIFICITY_LOOSE = 0.22;
/** The least specificity of a good match. */
const SPECIFICITY_GOOD = 0.4;

/** The slot of a tool whose name is the query. It has all of the query's words. */
const EXACT_NAME = -1;

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
  fitScores(query: string): ReadonlyMap<ToolId, number>;
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
 * How tools are ranked: by words, or also by meaning, with the model that ships with PML
 * (`builtin`) or with the model that the user configured (`hybrid`).
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
   * The words that no tool has, or no tool of the server that a query names, and servers that do
   * not exist; at most one note of each kind.
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
  /** Returns the models that compare meanings. The first model that has vectors is used. */
  semantics?(): readonly Semantics[];
  /** Returns the examples that ship with PML. */
  examples?(): ShippedExamples | undefined;
  /** Returns words of English, which are not corrected. */
  words?(): WordVectors | undefined;
}

/** The options of the search for one query. */
interface QuerySearch extends Pick<PickingLimits, "allowed"> {
  readonly limit: number;
  readonly nearness: Nearness | undefined;
  readonly memory: QueryMemory | undefined;
}

/** A ranked tool, and the part of the query's words that it has. */
interface MatchedTool extends RankedTool {
  readonly covered: number;
}

/** The result of one query. */
interface QueryResult {
  readonly ranked: readonly RankedTool[];
  /** The words of the query. */
  readonly terms: readonly QueryTerm[];
  readonly fit: "none" | "loosely" | "well";
}

/** The cosines of all tools for a query. */
interface Nearness extends Cosines {
  /** The lowest cosine of a tool that is related to a query. */
  readonly relatedMin: number;
}

/** The cosines by one model, for each query. */
interface ModelNearness extends Pick<Semantics, "mode"> {
  readonly byQuery: readonly Nearness[];
}

/** Searches the tools of a catalog. */
export class Search {
  readonly #catalog: Catalog;
  readonly #sources: SearchSources;
  readonly #index = new LexicalIndex();
  /** The lowest cosine of a related tool, cached for one list of tools and one model. */
  #relatedMin:
    | { readonly tools: object; readonly model: Semantics; readonly value: number }
    | undefined;
  #examples: Examples | undefined;
  #lists: readonly (readonly CatalogEntry[])[] = [];
  #entries: readonly CatalogEntry[] = [];
  /** The tools that are not offers. Only these are compared by meaning. */
  #ownTools: readonly CatalogEntry[] = [];
  /** All tools, by their names on their servers. */
  #byName: ReadonlyMap<string, readonly CatalogEntry[]> = new Map();
  #byServer: ReadonlyMap<string, readonly CatalogEntry[]> = new Map();
  #names = new ServerNames([]);
  /** The index of each tool in `#entries`. */
  #slots = new Uint32Array();
  /** The factor for the score of each tool; undefined without offers. */
  #factors: Float64Array | undefined;

  /** Creates an instance. The catalog is read at the first search. */
  constructor(catalog: Catalog, sources: SearchSources = {}) {
    this.#catalog = catalog;
    this.#sources = sources;
  }

  /** Returns the tools that match a query, or several queries, the best first. */
  async search(
    query: string | readonly string[],
    options: SearchOptions = {},
  ): Promise<SearchAnswer> {
    const queries = checkQueries(query);
    this.#readCatalogs();
    const nearness = await this.#compareMeanings(queries);
    // Checking the rules takes longest, so each tool is checked once for all queries.
    const allowed = memoized((entry: CatalogEntry) => this.#mayBeFound(entry, options));
    const { limit: requestedLimit = DEFAULT_LIMIT, threshold = 0, memory } = options;
    const limit = Math.min(Math.max(requestedLimit, 1), MOST_HITS);
    const results = queries.map((text, at) =>
      this.#find(text, { limit, allowed, nearness: nearness?.byQuery[at], memory })
    );
    const fitting = results.map(({ ranked }) => ranked.filter(({ score }) => score >= threshold));
    const byQuery = fitting.map((ranked, at) =>
      limitServers(ranked, { limit, isWanted: (server) => namesServer(queries[at] ?? "", server) })
        .map((tool) => this.#withCoverage(tool, results[at]?.terms ?? []))
    );
    const hits = mergeResults(byQuery, limit);
    return {
      mode: nearness?.mode ?? "lexical",
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

  /**
   * Reads the catalogs again if one of them changed. A changed catalog returns a new list object.
   */
  #readCatalogs(): void {
    const lists = this.#catalogs().map((catalog) => catalog.list());
    if (
      lists.length === this.#lists.length && lists.every((list, at) => list === this.#lists[at])
    ) {
      return;
    }
    this.#lists = lists;
    this.#entries = lists.flat().sort(byId);
    this.#ownTools = this.#entries.filter(({ server }) => server.isOffer !== true);
    this.#slots = Uint32Array.from(this.#entries, (_, at) => at);
    this.#factors = this.#ownTools.length === this.#entries.length ? undefined : Float64Array.from(
      this.#entries,
      ({ server }) => server.isOffer === true ? OFFER_FACTOR : 1,
    );
    this.#byServer = Map.groupBy(this.#entries, ({ server }) => server.name);
    this.#names = new ServerNames(this.#byServer.keys());
    this.#byName = Map.groupBy(this.#entries, ({ tool }) => tool.name);
    this.#index.set(this.#entries);
  }

  /**
   * Returns how near the tools are to the queries by meaning; undefined while no model has vectors
   * for all of them.
   */
  async #compareMeanings(queries: readonly string[]): Promise<ModelNearness | undefined> {
    const [entries, ownTools] = [this.#entries, this.#ownTools];
    for (const model of this.#sources.semantics?.() ?? []) {
      const similarities = await model.similarities(queries, ownTools);
      const relatedMin = similarities && await this.#relatedMinOf(model, ownTools);
      // If the catalog changed meanwhile, the cosines belong to another list.
      if (entries !== this.#entries) return undefined;
      if (similarities === undefined || relatedMin === undefined) continue;
      const { mode, weight } = model;
      const byQuery = similarities.map((cosines) => ({
        cosines: this.#inCatalogOrder(cosines),
        weight,
        relatedMin,
      }));
      return { mode, byQuery };
    }
    return undefined;
  }

  /** Returns the lowest cosine of a tool that is related to a query. */
  async #relatedMinOf(
    model: Semantics,
    tools: readonly CatalogEntry[],
  ): Promise<number | undefined> {
    if (this.#relatedMin?.tools !== tools || this.#relatedMin.model !== model) {
      const unrelated = await model.similarities(UNRELATED, tools);
      if (unrelated === undefined) return undefined;
      this.#relatedMin = { tools, model, value: largestCosine(unrelated) };
    }
    return this.#relatedMin.value;
  }

  /** Puts the cosines into the order of all tools, with NaN for offers. */
  #inCatalogOrder(cosines: Float32Array): Float32Array {
    if (this.#ownTools.length === this.#entries.length) return cosines;
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

  #find(query: string, { limit, allowed, nearness, memory }: QuerySearch): QueryResult {
    const most = Math.max(LEAST_RANKED, 2 * limit);
    const { scores: lexicalScores, matches, terms } = this.#index.rank(
      query,
      this.#sources.words?.(),
    );
    const isFused = nearness !== undefined && /\S/.test(query);
    const scores = isFused
      ? this.#fuse(lexicalScores, nearness, { matches, allowed })
      : lexicalScores;
    const candidates = isFused ? this.#slots : matches;
    const factors = this.#factors;
    if (factors !== undefined) {
      for (const slot of candidates) scores[slot] = (scores[slot] ?? 0) * (factors[slot] ?? 1);
    }
    const picking = { candidates, most, mostOfServer: most / 2, allowed };
    const useScores = memory?.fitScores(query) ?? new Map<ToolId, number>();
    const queryTerms = new Set(termsOf(query));
    const examples = this.#examples ??= new Examples(this.#sources.examples?.());
    const gainOf = ({ entry }: RankedTool) =>
      USE_GAIN * (useScores.get(entry.id) ?? 0) +
      EXAMPLE_GAIN * examples.similarity(queryTerms, entry);
    const best = scaleScores(bestTools(this.#entries, scores, picking));
    const ranked = demoteAliases(addGains(best, gainOf));
    const exactMatches = this.#findByName(query.trim()).filter(allowed);
    if (exactMatches.length > 0) {
      return { ranked: putFirst(exactMatches, ranked), terms, fit: "well" };
    }
    const decidingTools = ranked.slice(0, DECIDING_COUNT);
    const evidence = bestEvidence(
      decidingTools.map(({ slot }) => this.#index.evidence(slot, terms)),
    );
    const isNear = nearness !== undefined &&
      decidingTools.some(({ slot }) => (nearness.cosines[slot] ?? -1) >= nearness.relatedMin);
    const fit = fitOf(evidence, isNear);
    return { ranked: fit === "none" ? [] : ranked, terms, fit };
  }

  #withCoverage(tool: RankedTool, terms: readonly QueryTerm[]): MatchedTool {
    const covered = tool.slot === EXACT_NAME ? 1 : this.#index.evidence(tool.slot, terms).covered;
    return { ...tool, covered };
  }

  #fuse(
    scores: Float64Array,
    nearness: Nearness,
    { matches, allowed }: Pick<PickingLimits, "allowed"> & { readonly matches: Uint32Array },
  ): Float64Array {
    const bestOf = (values: Float64Array | Float32Array, among: Uint32Array) => {
      let best = 0;
      for (let at = 0; at < among.length; at++) {
        // `!` because a check for undefined takes longer than the comparison.
        const slot = among[at]!;
        const value = values[slot]!;
        // The rules are checked last, because they take longest.
        if (value > best && allowed(this.#entries[slot]!)) best = value;
      }
      return best;
    };
    let [least, comparedCount] = [Infinity, 0];
    for (let slot = 0; slot < this.#entries.length && comparedCount < MOST_COMPARED; slot++) {
      const [entry, cosine] = [this.#entries[slot], nearness.cosines[slot] ?? NaN];
      if (entry === undefined || Number.isNaN(cosine) || !allowed(entry)) continue;
      least = Math.min(least, cosine);
      comparedCount += 1;
    }
    return fuseScores(scores, nearness, {
      bestScore: bestOf(scores, matches),
      bestCosine: bestOf(nearness.cosines, this.#slots),
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
    return findNotes([...results.keys()], {
      bestServer: (query) => {
        const { ranked: [best], fit } = results.get(query) ?? { ranked: [] };
        return fit === "well" ? best?.entry.server.name : undefined;
      },
      names: this.#names,
      canFind: (name) => this.#byServer.get(name)?.some(allowed) ?? false,
      isServer: (name) => this.#sources.isTaken?.(name) ?? false,
      has: (terms, { server, mayBeMisspelled }) =>
        index.hasAll(terms, {
          mayBeMisspelled,
          isAmong: (entry) =>
            (server === undefined || entry.server.name === server) && allowed(entry),
        }),
      isInToolName: (term) => index.isInToolName(term),
      isCommon: (term) => words.isCommon(term),
    }, server);
  }

  /** Returns the tools with this id, this name in `tools/list` or this name on their server. */
  #findByName(name: string): readonly CatalogEntry[] {
    const wire = name.replace(/^mcp__.+?__/, "");
    const tools = this.#catalogs().flatMap((catalog) => {
      const id = catalog.byWireName(name) ?? catalog.byWireName(wire);
      // A text that is not an id finds nothing.
      return catalog.get(id ?? (name as ToolId)) ?? [];
    });
    return tools.length > 0 ? tools : this.#byName.get(name) ?? [];
  }
}

/**
 * Returns how well tools match a query. If their meaning is near, too, less specific words suffice
 * for a good match.
 */
function fitOf(evidence: Evidence, isNear: boolean): QueryResult["fit"] {
  if (fits(evidence, isNear ? SPECIFICITY_LOOSE : SPECIFICITY_GOOD)) return "well";
  return isNear || fits(evidence, SPECIFICITY_LOOSE) ? "loosely" : "none";
}

function fits({ covered, specificity }: Evidence, specificityMin: number): boolean {
  return covered >= COVERED_MIN || specificity >= specificityMin;
}

function bestEvidence(all: readonly Evidence[]): Evidence {
  return all.reduce((one, other) => ({
    covered: Math.max(one.covered, other.covered),
    specificity: Math.max(one.specificity, other.specificity),
  }), { covered: 0, specificity: 0 });
}

/** Scales the scores so that the best one is 1. */
function scaleScores(ranked: readonly RankedTool[]): readonly RankedTool[] {
  const best = ranked[0]?.score ?? 1;
  return ranked.map((tool) => ({ ...tool, score: tool.score / best }));
}

/**
 * Raises the scores of ranked tools that were used for similar queries, or have a similar example.
 * Adds no tools.
 */
function addGains(
  ranked: readonly RankedTool[],
  gainOf: (tool: RankedTool) => number,
): readonly RankedTool[] {
  const gains = ranked.map(gainOf);
  if (gains.every((gain) => gain === 0)) return ranked;
  const raised = ranked.map((tool, at) => ({ ...tool, score: tool.score + (gains[at] ?? 0) }));
  return scaleScores(raised.sort((one, other) => other.score - one.score));
}

/** Puts the tools whose name is the query before all other tools. */
function putFirst(
  exactMatches: readonly CatalogEntry[],
  ranked: readonly RankedTool[],
): readonly RankedTool[] {
  const others = ranked.filter(({ entry }) => !exactMatches.includes(entry));
  return [
    ...exactMatches.map((entry) => ({ entry, slot: EXACT_NAME, score: 1 })),
    ...others.map((tool) => ({ ...tool, score: tool.score / 2 })),
  ];
}

function checkQueries(query: string | readonly string[]): readonly string[] {
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
 * Takes the best hits of each query in turn, so that no query excludes the hits of another, and
 * sorts the hits by score.
 */
function mergeResults(
  byQuery: readonly (readonly MatchedTool[])[],
  limit: number,
): readonly MatchedTool[] {
  const hitsById = new Map<ToolId, MatchedTool>();
  const longest = Math.max(0, ...byQuery.map(({ length }) => length));
  for (let at = 0; at < longest; at++) {
    for (const hit of byQuery.flatMap((hits) => hits[at] ?? [])) {
      const earlier = hitsById.get(hit.entry.id);
      const isUsed = earlier === undefined ? hitsById.size < limit : earlier.score < hit.score;
      if (isUsed) hitsById.set(hit.entry.id, hit);
    }
  }
  return [...hitsById.values()].sort((a, b) =>
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
