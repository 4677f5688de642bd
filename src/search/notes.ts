/**
 * Creates notes about what no tool can do for a query: words that no tool has, words that no tool
 * of the named server has, and unknown servers.
 *
 * @module
 */

import { runsOf, termsOf, termsOfRun } from "./terms.ts";

/** The maximum number of words in a note. */
const NOTE_WORDS_MAX = 2;
/** The lengths of the longest and the shortest words that a note mentions. */
const LONGEST = 24;
const SHORTEST = 4;
/** Quoted values of the user. They are not names of servers or words of tools. */
const QUOTED = /"[^"]*"|“[^”]*”|`[^`]*`|(?<![\p{L}\p{N}])'[^']*'(?![\p{L}\p{N}])/gu;
/** A word, with hyphens and an ending such as "'s". Ids, numbers and paths do not match. */
const WORD = /^(\p{L}+(?:-\p{L}+)*)(?:['’]s?)?$/u;
/**
 * Punctuation around a word. Marks of paths, variables, handles and ids stay, so that such a text is
 * no word.
 */
const EDGES = /^[^\p{L}\p{N}/\\@#$~._-]+|[^\p{L}\p{N}/\\]+$/gu;
/** An id of a tool anywhere in a query, such as `mcp__git__log` or `git:show_log`. */
const TOOL_ID = /^(?:mcp__)?([a-z][a-z0-9-]*)(?:__[\w-]+|:[a-z0-9]+[_-][\w-]+)$/i;
/**
 * A query that is only an id of a tool, such as `git:log`. Inside a longer query, a text such as
 * `label:bug` is rarely an id.
 */
const ONLY_ID = /^([a-z][a-z0-9-]*):[\w-]+$/i;
/** English function words. No note mentions them. */
const GRAMMAR = new Set(
  ("although among anyone anything because being between cannot despite during each every " +
    "everyone everything having her hers herself him himself his however itself might " +
    "must myself nor nothing onto others ourselves per shall she should since " +
    "someone something than themselves they those though throughout toward towards unless unlike " +
    "until upon versus whatever whenever whereas wherever whether while who whoever whom whose why " +
    "within without would yet yourself don doesn didn isn aren wasn won hasn haven couldn shouldn")
    .split(" "),
);
/** Parts that occur in the names of many servers. Queries need not contain them. */
const GENERIC_PARTS = new Set(["mcp", "server", "remote"]);
/** Words before a server's name at the end of a query, as in "list issues in linear". */
const BEFORE = new Set("in on to from with using via into at".split(" "));
/** Words after a server's name, as in "the linear server". */
const AFTER = new Set(["server", "mcp"]);
/**
 * The maximum number of words of a query that PML compares with one server. A longer query is not
 * compared: it describes a whole task, which often needs several servers.
 */
const COMPARED_WORDS_MAX = 8;

/** The names of servers, prepared for a search in queries. */
export class ServerNames {
  readonly #byFirstPart: ReadonlyMap<string, readonly (readonly [name: string, parts: string[]])[]>;

  /** Prepares the names. */
  constructor(names: Iterable<string>) {
    const split = [...names].map((name) =>
      [name, wordsIn(name).filter((part) => !GENERIC_PARTS.has(part))] as const
    );
    this.#byFirstPart = Map.groupBy(split, ([, [first = ""]]) => first);
  }

  /**
   * Returns the servers that a query names. A name that is a common word counts only before a word
   * in `AFTER`, or at the end of the query after a word in `BEFORE`.
   */
  findNamed(query: string, isCommon: (term: string) => boolean): readonly string[] {
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
  /** Returns the server of the best tool for a query, if that tool matches well. */
  bestServer(query: string): string | undefined;
  /** Returns whether a server exists, even if none of its tools can be found. */
  isServer(name: string): boolean;
  /**
   * Returns whether one tool has each of these stems or a synonym of it. With `server`, the tool
   * must be one of that server. If the stems may be misspelled, similar words count, too.
   */
  has(terms: readonly string[], options: {
    readonly server?: string;
    readonly mayBeMisspelled: boolean;
  }): boolean;
  /** Returns whether the name of a tool has a stem. */
  isInToolName(term: string): boolean;
  /** Returns whether a stem belongs to a common English word. */
  isCommon(term: string): boolean;
}

/** A note about what no tool can do. */
export interface SearchNote {
  /**
   * The kind of the words:
   * - "servers": unknown servers
   * - "tools": words that no tool has
   * - "server": words that no tool of `server` has
   */
  readonly about: "servers" | "tools" | "server";
  /** At most two words, in lower case. */
  readonly words: readonly string[];
  /** The server whose tools have none of the words; set if `about` is "server". */
  readonly server?: string;
}

/** Returns the text of a note. */
export function noteText({ about, words, server }: SearchNote): string {
  const names = words.join(", ");
  if (about === "servers") return `no server: ${names}`;
  return about === "tools" ? `no tool mentions: ${names}` : `${server} has no tool for: ${names}`;
}

/** Returns the notes about queries, at most one of each kind. `server` limits the search. */
export function findNotes(
  queries: readonly string[],
  tools: Findable,
  server: string | undefined,
): readonly SearchNote[] {
  const unknown = queries.flatMap((query) => unknownServers(query, tools));
  const missing = queries.flatMap((query) => missingWords(query, tools))
    .filter((word) => !unknown.includes(word));
  const missingOnServers = queries.flatMap((query) => {
    const name = server ?? tools.names.findNamed(query, (term) => tools.isCommon(term))
      .find((candidate) => tools.canFind(candidate));
    if (name === undefined || tools.bestServer(query) === name) return [];
    const words = missingFromServer(name, query, tools);
    return words.filter((word) => !missing.includes(word)).map((word) => ({ name, word }));
  });
  const [first] = missingOnServers;
  const words = firstDistinct(
    missingOnServers.filter(({ name }) => name === first?.name).map(({ word }) => word),
  );
  const notes: readonly SearchNote[] = [
    { about: "servers", words: firstDistinct(unknown) },
    { about: "tools", words: firstDistinct(missing) },
    { about: "server", words, ...first && { server: first.name } },
  ];
  return notes.filter(({ words }) => words.length > 0);
}

/** Returns the words of a query that no tool has, except common English words. */
function missingWords(query: string, tools: Findable): readonly string[] {
  return plainWords(query).filter((word) => {
    const terms = termsOf(word.toLowerCase());
    if (terms.length === 0 || terms.every((term) => tools.isCommon(term))) return false;
    if (GRAMMAR.has(word.toLowerCase())) return false;
    // Words with capitals are often names, which are not corrected.
    const mayBeMisspelled = word === word.toLowerCase();
    if (tools.has(terms, { mayBeMisspelled })) return false;
    const parts = termsOfRun(word);
    return parts.length < 2 || !tools.has(parts, { mayBeMisspelled: false });
  }).map((word) => word.toLowerCase());
}

/**
 * Returns words of a query that none of a server's tools has. Only the first word, which is mostly
 * a verb, and words in the names of other tools are checked.
 */
function missingFromServer(server: string, query: string, tools: Findable): readonly string[] {
  const serverTerms = new Set(termsOf(server));
  const words = plainWords(query).map((word) => word.toLowerCase())
    .map((word) => ({ word, terms: termsOf(word) }))
    .filter(({ terms }) => terms.length > 0 && !terms.every((term) => serverTerms.has(term)));
  if (words.length > COMPARED_WORDS_MAX) return [];
  return words
    .filter(({ terms }, at) => at === 0 || terms.every((term) => tools.isInToolName(term)))
    .filter(({ terms }) => !tools.has(terms, { server, mayBeMisspelled: true }))
    .map(({ word }) => word);
}

function unknownServers(query: string, tools: Findable): readonly string[] {
  const serverOfId = ONLY_ID.exec(query.trim())?.[1];
  const names = query.split(/\s+/).flatMap((token) => TOOL_ID.exec(token)?.[1] ?? []);
  return [...serverOfId === undefined ? [] : [serverOfId], ...names]
    .filter((name) => !tools.canFind(name) && !tools.isServer(name) && name.length <= LONGEST);
}

/** Returns the words of a query, except quoted values, numbers, ids and paths. */
function plainWords(query: string): readonly string[] {
  return query.replace(QUOTED, " ").split(/\s+/).flatMap((token) => {
    const plain = WORD.exec(token.replace(EDGES, ""))?.[1] ?? "";
    return runsOf(plain).filter(({ length }) => length >= SHORTEST && length <= LONGEST);
  });
}

/** Returns the first different words of a note, at most `NOTE_WORDS_MAX`. */
function firstDistinct(words: readonly string[]): readonly string[] {
  return [...new Set(words)].slice(0, NOTE_WORDS_MAX);
}
