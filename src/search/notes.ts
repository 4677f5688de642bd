/**
 * Says what no tool can do for a query: names the words that no tool has, or no tool of the server
 * that the query names.
 *
 * @module
 */

import { runsOf, termsOf, termsOfRun } from "./terms.ts";

/** How many words a note names, and how long they may be. */
const MOST = 2;
const LONGEST = 24;
const SHORTEST = 4;
/** Values of the user, which name no product. */
const QUOTED = /"[^"]*"|“[^”]*”|`[^`]*`|(?<![\p{L}\p{N}])'[^']*'(?![\p{L}\p{N}])/gu;
/** A word, with hyphens and an ending such as "'s". Ids, numbers, paths and addresses are none. */
const PLAIN = /^(\p{L}+(?:-\p{L}+)*)(?:['’]s?)?$/u;
const EDGES = /^[^\p{L}\p{N}/\\@#$~._-]+|[^\p{L}\p{N}/\\]+$/gu;
/**
 * The id of a tool, with the name of its server. Words such as `label:bug` are more often something
 * else, unless nothing else is in the query.
 */
const TOOL_ID = /^(?:mcp__)?([a-z][a-z0-9-]*)(?:__[\w-]+|:[a-z0-9]+[_-][\w-]+)$/i;
const ONLY_ID = /^([a-z][a-z0-9-]*):[\w-]+$/i;
/** English words that are no nouns, verbs, adjectives or adverbs, as far as queries use them. */
const GRAMMAR = new Set(
  ("although among anyone anything because being between cannot despite during each every " +
    "everyone everything having her hers herself him himself his however itself might " +
    "must myself nor nothing onto others ourselves per shall she should since " +
    "someone something than themselves they those though throughout toward towards unless unlike " +
    "until upon versus whatever whenever whereas wherever whether while who whoever whom whose why " +
    "within without would yet yourself don doesn didn isn aren wasn won hasn haven couldn shouldn")
    .split(" "),
);
/** Parts of names of servers that say nothing. */
const SERVER = new Set(["mcp", "server", "remote"]);
/** Words before the name of a server that is also a common word, and ends the query. */
const BEFORE = new Set("in on to from with using via into at".split(" "));
/** Words after any name of a server. */
const AFTER = new Set(["server", "mcp"]);
/** A longer query describes a whole task, which one server need not do. */
const MOST_WORDS = 8;

/** The names of servers, prepared for a search in queries. */
export class ServerNames {
  readonly #byFirstPart: ReadonlyMap<string, readonly (readonly [name: string, parts: string[]])[]>;

  /** Takes the names. */
  constructor(names: Iterable<string>) {
    const split = [...names].map((name) =>
      [name, wordsIn(name).filter((part) => !SERVER.has(part))] as const
    );
    this.#byFirstPart = Map.groupBy(split, ([, [first = ""]]) => first);
  }

  /**
   * Returns the servers that a query names. A name of common words needs a word before or after it.
   */
  namedIn(query: string, isCommon: (term: string) => boolean): readonly string[] {
    const words = wordsIn(query);
    return words.flatMap((word, at) =>
      (this.#byFirstPart.get(word) ?? []).filter(([, parts]) => {
        const end = at + parts.length;
        if (!parts.every((part, offset) => words[at + offset] === part)) return false;
        return AFTER.has(words[end] ?? "") || !parts.flatMap(termsOf).every(isCommon) ||
          (end === words.length && BEFORE.has(words[at - 1] ?? ""));
      }).map(([name]) => name)
    );
  }
}

function wordsIn(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** The tools that a search may find. */
export interface Findable {
  /** The names of all servers. */
  readonly names: ServerNames;
  /** Returns whether a tool of a server may be found. */
  canFind(server: string): boolean;
  /** The server of the best tool for a query, if that tool matches well. */
  bestServer(query: string): string | undefined;
  /** Returns whether a server exists, also if none of its tools can be found. */
  isServer(name: string): boolean;
  /**
   * Returns whether one tool, of a server if one is given, has all these stems, or synonyms, or
   * similar words if they may be wrong.
   */
  has(terms: readonly string[], of: {
    readonly server?: string;
    readonly mayBeWrong: boolean;
  }): boolean;
  /** Returns whether the name of a tool has a stem. */
  isInName(term: string): boolean;
  /** Returns whether a stem is one of a common English word. */
  isCommon(term: string): boolean;
}

/** A note about what no tool can do. */
export interface SearchNote {
  /** The words are names of servers, or no tool has them, or no tool of one server does. */
  readonly about: "servers" | "tools" | "server";
  /** At most two words, in lower case. */
  readonly words: readonly string[];
  /** The server whose tools have none of the words. */
  readonly server?: string;
}

/** Returns the text of a note. */
export function noteText({ about, words, server }: SearchNote): string {
  const names = words.join(", ");
  if (about === "servers") return `no server: ${names}`;
  return about === "tools" ? `no tool mentions: ${names}` : `${server} has no tool for: ${names}`;
}

/** Returns the notes about queries, at most one of each kind. `server` limits the search. */
export function notesAbout(
  queries: readonly string[],
  tools: Findable,
  server: string | undefined,
): readonly SearchNote[] {
  const unknown = queries.flatMap((query) => unknownServers(query, tools));
  const missing = distinct(queries.flatMap((query) => missingWords(query, tools)))
    .filter((word) => !unknown.includes(word));
  const named = queries.flatMap((query) => {
    const name = server ?? tools.names.namedIn(query, (term) => tools.isCommon(term))
      .find((one) => tools.canFind(one));
    if (name === undefined || tools.bestServer(query) === name) return [];
    const words = missingOf(name, query, tools);
    return words.filter((word) => !missing.includes(word)).map((word) => ({ name, word }));
  });
  const [first] = named;
  const words = distinct(named.filter(({ name }) => name === first?.name).map(({ word }) => word));
  const notes: readonly SearchNote[] = [
    { about: "servers", words: distinct(unknown) },
    { about: "tools", words: missing },
    { about: "server", words, ...first && { server: first.name } },
  ];
  return notes.filter(({ words }) => words.length > 0);
}

/** Returns the words of a query that no tool has, except common English ones. */
function missingWords(query: string, tools: Findable): readonly string[] {
  return plainWords(query).filter((word) => {
    const whole = termsOf(word.toLowerCase());
    if (whole.length === 0 || whole.every((term) => tools.isCommon(term))) return false;
    if (GRAMMAR.has(word.toLowerCase())) return false;
    // A name is spelled right more often than other words.
    const mayBeWrong = word === word.toLowerCase();
    if (tools.has(whole, { mayBeWrong })) return false;
    const parts = termsOfRun(word);
    return parts.length < 2 || !tools.has(parts, { mayBeWrong: false });
  }).map((word) => word.toLowerCase());
}

/**
 * Returns words of a query that none of a server's tools has: the first word of the query, which is
 * mostly a verb, and words that are in names of other tools.
 */
function missingOf(server: string, query: string, tools: Findable): readonly string[] {
  const own = new Set(termsOf(server));
  const words = plainWords(query).map((word) => word.toLowerCase())
    .map((word) => ({ word, terms: termsOf(word) }))
    .filter(({ terms }) => terms.length > 0 && !terms.every((term) => own.has(term)));
  if (words.length > MOST_WORDS) return [];
  return words
    .filter(({ terms }, at) => at === 0 || terms.every((term) => tools.isInName(term)))
    .filter(({ terms }) => !tools.has(terms, { server, mayBeWrong: true }))
    .map(({ word }) => word);
}

function unknownServers(query: string, tools: Findable): readonly string[] {
  const only = ONLY_ID.exec(query.trim())?.[1];
  const names = query.split(/\s+/).flatMap((token) => TOOL_ID.exec(token)?.[1] ?? []);
  return [...only === undefined ? [] : [only], ...names]
    .filter((name) => !tools.canFind(name) && !tools.isServer(name) && name.length <= LONGEST);
}

/** Returns the words of a query without values of the user. */
function plainWords(query: string): readonly string[] {
  return query.replace(QUOTED, " ").split(/\s+/).flatMap((token) => {
    const plain = PLAIN.exec(token.replace(EDGES, ""))?.[1] ?? "";
    return runsOf(plain).filter(({ length }) => length >= SHORTEST && length <= LONGEST);
  });
}

function distinct(words: readonly string[]): readonly string[] {
  return [...new Set(words)].slice(0, MOST);
}
