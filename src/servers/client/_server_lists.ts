/**
 * Caches the lists of servers until they change, in memory and in files for later processes.
 *
 * @module
 */

import { basename, join } from "node:path";
import { parseExact } from "../../core/exact_json.ts";
import { sha256 } from "../../core/hash.ts";
import { isObject, type JsonObject, objectOf, sorted } from "../../core/json.ts";
import { LIST_NAMES, type ListItem, type ListName, LISTS } from "../../protocol/lists.ts";
import { memoized } from "../../core/memo.ts";
import { drop, pruneCache, readCache, writeCache } from "../../io/kept.ts";

/** The key of cached lists. The same object has the same lists. */
export interface ListKey {
  readonly name: string;
  /** Everything that the lists depend on, without secrets. */
  readonly definition: unknown;
  /** Whether the lists are kept in a file for other processes. */
  readonly isKept: boolean;
}

interface CachedLists {
  readonly lists: Map<ListName, readonly ListItem[]>;
  readonly asking: Map<ListName, Promise<readonly ListItem[]>>;
  /** When each was loaded since the server was started. */
  readonly at: Map<ListName, number>;
  /** Undefined if the lists are not, or no longer, kept in a file. */
  file: string | undefined;
  /** The file that names the file with the latest lists of the server. */
  readonly latest: string | undefined;
  /** Whether they are from an earlier process of the server. */
  isOld: boolean;
}

/**
 * The version of the files. In version 1 lists of tools had no instructions: a server with such a
 * file would look as if it had none until its next start, and then as if they were new.
 */
const FORM = 2;
/** How long a list is fresh if its server does not report changes, in milliseconds. */
export const FRESH_MS = 60_000;
const NONE: readonly ListItem[] = [];
const NO_NAMES: readonly ListName[] = [];
/** For how many sets of client capabilities the lists of a server are cached at once. */
const SETS_MAX = 8;
/** The maximum number of files of one server, over all workspaces. */
const FILES_MAX = 64;
/** The maximum number of files that name the latest lists of a server, over all servers. */
const LATEST_MAX = 256;

/** The facts that the lists of a server depend on, next to its definition. */
export interface ListFacts {
  readonly workspace: string;
  /** The capabilities that the server gets. */
  readonly able: JsonObject;
}

/** The cached lists of all servers. */
export class ServerLists {
  readonly #folder: string;
  readonly #onError: (error: unknown) => void;
  readonly #of = memoized((owner: ListKey) => this.#open(owner));
  readonly #owners = memoized((_: ListKey) => new Map<string, ListKey>());
  /** For each owner, the file that names the file with the latest lists of its server. */
  readonly #latest = new WeakMap<ListKey, string>();
  /** The server of each owner, and the servers that were started. */
  readonly #servers = new WeakMap<ListKey, ListKey>();
  readonly #started = new WeakSet<ListKey>();
  /** The owner of each server that was returned last: the next call mostly wants the same. */
  readonly #last = new WeakMap<ListKey, ListFacts & { readonly owner: ListKey }>();

  /** Uses a folder in the PML home. Calls `onError` if a file cannot be written. */
  constructor(home: string, onError: (error: unknown) => void) {
    this.#folder = join(home, "lists");
    this.#onError = onError;
  }

  /**
   * Returns the owner of the lists that a server has under given facts, such as the capabilities of
   * a client. It is the same object as long as it is among the last few: a client can declare any
   * number of capabilities.
   */
  ownerOf(server: ListKey, facts: ListFacts): ListKey {
    const last = this.#last.get(server);
    if (last?.workspace === facts.workspace && last.able === facts.able) return last.owner;
    const owner = this.#ownerOf(server, facts);
    this.#last.set(server, { ...facts, owner });
    return owner;
  }

  #ownerOf(server: ListKey, facts: ListFacts): ListKey {
    const owners = this.#owners(server);
    const key = sha256(sorted([facts.workspace, facts.able]));
    const { name, definition, isKept } = server;
    const owner = owners.get(key) ?? { name, definition: [definition, key], isKept };
    owners.delete(key);
    owners.set(key, owner);
    this.#servers.set(owner, server);
    if (isKept) this.#latest.set(owner, this.#latestOf(server, facts));
    const [[oldest, old] = []] = owners;
    // guard: able-sets
    if (owners.size > SETS_MAX && oldest !== undefined && old !== undefined) {
      owners.delete(oldest);
      this.#discard(this.#of(old));
    }
    return owner;
  }

  /** Removes lists of a server, for all clients. */
  forgetAll(server: ListKey, lists: readonly ListName[]): void {
    for (const owner of this.#owners(server).values()) {
      for (const list of lists) this.forget(owner, list);
    }
  }

  /** Returns a list: the same array until the list is forgotten. */
  async get(
    owner: ListKey,
    name: ListName,
    ask: () => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    const cached = this.#of(owner);
    return cached.lists.get(name) ?? await this.renew(owner, name, ask);
  }

  /** Loads a list again, although it is cached. The cached one stays until the answer comes. */
  async renew(
    owner: ListKey,
    name: ListName,
    ask: () => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    const cached = this.#of(owner);
    const asking = cached.asking.get(name) ?? this.#ask(cached, name, ask);
    cached.asking.set(name, asking);
    return await asking;
  }

  /** Removes a list, so that it is loaded again: by the next process, if this one ends before. */
  forget(owner: ListKey, name: ListName): void {
    const cached = this.#of(owner);
    if (cached.lists.delete(name)) this.#keep(cached);
    // An answer that is under way may be from before the change.
    cached.asking.delete(name);
  }

  /**
   * Marks the cached lists of a server, for all sets of capabilities, as those of an earlier process:
   * the server was started.
   */
  outdate(owner: ListKey): void {
    const server = this.#servers.get(owner) ?? owner;
    this.#started.add(server);
    for (const one of [owner, ...this.#owners(server).values()]) {
      const cached = this.#of(one);
      cached.isOld = cached.lists.size > 0;
      cached.at.clear();
    }
  }

  /** Returns whether a list is cached. */
  has(owner: ListKey, name: ListName): boolean {
    return this.#of(owner).lists.has(name);
  }

  /** Returns a list as far as it is cached. */
  cached(owner: ListKey, name: ListName): readonly ListItem[] {
    return this.#of(owner).lists.get(name) ?? NONE;
  }

  /**
   * Returns the list that the server had last for any client; undefined if there is none, or the
   * list of this owner is cached.
   */
  earlier(owner: ListKey, name: ListName): readonly ListItem[] | undefined {
    const latest = this.#latest.get(owner);
    if (latest === undefined || this.has(owner, name)) return undefined;
    const { file } = objectOf(readCache(latest));
    if (typeof file !== "string") return undefined;
    return listsAt(join(this.#folder, basename(file))).get(name);
  }

  /**
   * Returns, once, the names of the lists that are from an earlier process of the server, or older
   * than `maxMs`: they may have changed.
   */
  takeOld(owner: ListKey, maxMs = Infinity): readonly ListName[] {
    const cached = this.#of(owner);
    const { isOld, at, lists } = cached;
    cached.isOld = false;
    let old: ListName[] | undefined;
    for (const name of lists.keys()) {
      const since = at.get(name);
      // No notification reports that only the files of a skill changed.
      const most = name === "skills" ? Math.min(maxMs, FRESH_MS) : maxMs;
      const isTooOld = since === undefined
        ? isOld
        : most !== Infinity && performance.now() - since > most;
      if (isTooOld) (old ??= []).push(name);
    }
    return old ?? NO_NAMES;
  }

  async #ask(
    cached: CachedLists,
    name: ListName,
    ask: () => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    // One turn later, so that `get` has registered it as being loaded.
    await Promise.resolve();
    const own = cached.asking.get(name);
    try {
      const list = await ask();
      if (cached.asking.get(name) !== own) return list;
      cached.lists.set(name, list);
      cached.at.set(name, performance.now());
      this.#keep(cached);
      this.#keepLatest(cached);
      return list;
    } finally {
      if (cached.asking.get(name) === own) cached.asking.delete(name);
    }
  }

  /** Writes the file. If it cannot be written, the next process loads the lists again. */
  #keep({ file, lists }: CachedLists): void {
    if (file === undefined) return;
    try {
      writeCache(file, Object.fromEntries(lists));
      pruneCache(this.#folder, { like: file, most: FILES_MAX });
    } catch (error) {
      this.#onError(error);
    }
  }

  /** Writes which file has the latest lists of a server. */
  #keepLatest({ file, latest }: CachedLists): void {
    if (file === undefined || latest === undefined) return;
    try {
      if (objectOf(readCache(latest)).file === basename(file)) return;
      writeCache(latest, { file: basename(file) });
      pruneCache(this.#folder, { like: latest, most: LATEST_MAX });
    } catch {
      // The lists of another set of capabilities are not used.
    }
  }

  /** Removes the file: nothing would update it when the lists change. */
  #discard(cached: CachedLists): void {
    if (cached.file !== undefined) drop(cached.file);
    cached.file = undefined;
  }

  #open(owner: ListKey): CachedLists {
    const { name, definition, isKept } = owner;
    const file = isKept ? this.#fileOf(name, definition) : undefined;
    const latest = this.#latest.get(owner);
    const lists = file === undefined ? new Map() : listsAt(file);
    // The file may be from before the start of the server.
    const isOld = lists.size > 0 && this.#started.has(this.#servers.get(owner) ?? owner);
    return { lists, asking: new Map(), at: new Map(), file, latest, isOld };
  }

  #fileOf(name: string, definition: unknown): string {
    return join(this.#folder, `${name}-${keyOf([name, definition])}.json`);
  }

  #latestOf({ name, definition }: ListKey, { workspace }: ListFacts): string {
    return join(this.#folder, `latest-${keyOf([name, definition, workspace])}.json`);
  }
}

function keyOf(facts: readonly unknown[]): string {
  return sha256(JSON.stringify([FORM, ...facts])).slice(0, 32);
}

/** Reads the lists in a file. Their numbers keep their text. */
function listsAt(file: string): Map<ListName, readonly ListItem[]> {
  const stored = readCache(file, parseExact);
  const lists = new Map<ListName, readonly ListItem[]>();
  if (!isObject(stored)) return lists;
  for (const name of LIST_NAMES) {
    const list = stored[name];
    if (Array.isArray(list) && list.every((item) => isListItem(name, item))) lists.set(name, list);
  }
  return lists;
}

/** Returns whether a value is an item of a list. Its schemas are checked elsewhere. */
export function isListItem(
  name: ListName,
  value: unknown,
): value is ListItem & Record<string, unknown> {
  return isObject(value) && typeof value[LISTS[name].key] === "string";
}

/** A list of tools that came on a connection. */
export interface ListedTools {
  readonly tools: readonly ListItem[];
  /** When it was requested, by `performance.now()`. */
  readonly at: number;
  /** How long it stays current by its `ttlMs`, in milliseconds. */
  readonly ttlMs: number | undefined;
}
