/**
 * Caches the lists of servers until they change, in memory and in files for later processes.
 *
 * @module
 */

import { basename, join } from "node:path";
import { parseExact } from "../../core/exact_json.ts";
import { sha256 } from "../../core/hash.ts";
import {
  isObject,
  type JsonObject,
  memberOf,
  objectOf,
  sortedJsonText,
  withoutUndefined,
} from "../../core/json.ts";
import { LIST_NAMES, type ListItem, type ListName, LISTS } from "../../protocol/lists.ts";
import { memoized } from "../../core/memo.ts";
import { pruneCache, readCache, removeIfPossible, writeCache } from "../../io/cache_files.ts";

/** The key of cached lists. Two keys are equal only if they are the same object. */
export interface ListKey {
  readonly name: string;
  /** The facts on which the lists depend, without secrets. */
  readonly definition: unknown;
  /** Whether the lists are stored in a file for other processes. */
  readonly hasFiles: boolean;
}

interface CachedLists {
  readonly lists: Map<ListName, readonly ListItem[]>;
  /** The open requests for lists. */
  readonly loading: Map<ListName, Promise<readonly ListItem[]>>;
  /** When each list was loaded, by `performance.now()`. Empty after a start of the server. */
  readonly loadedAt: Map<ListName, number>;
  /** The file that stores the lists; undefined if no file stores them, or no longer does. */
  file: string | undefined;
  /** A second file, which contains the name of the file with the latest lists of the server. */
  readonly latest: string | undefined;
  /** Whether the lists are from an earlier process of the server. */
  isOld: boolean;
}

/**
 * The version of the files. In version 1, lists of tools had no instructions. With such a file, the
 * server would seem to have no instructions until its next start, and then to have new ones.
 */
const FORMAT_VERSION = 2;
/** How long a list is fresh if its server does not report changes, in milliseconds. */
export const FRESH_MS = 60_000;
const NONE: readonly ListItem[] = [];
const NO_NAMES: readonly ListName[] = [];
/** The maximum number of sets of client capabilities for which the lists of a server are cached. */
const SETS_MAX = 8;
/** The maximum number of files of one server, over all workspaces. */
const FILES_MAX = 64;
/** The maximum number of files that name the latest lists, over all servers. */
const LATEST_MAX = 256;

/** The facts on which the lists of a server depend, besides its definition. */
export interface ListFacts {
  readonly workspace: string;
  /** The capabilities that the server gets. */
  readonly capabilities: JsonObject;
}

/** The cached lists of all servers. */
export class ServerLists {
  readonly #folder: string;
  readonly #onError: (error: unknown) => void;
  readonly #cachedOf = memoized((listKey: ListKey) => this.#open(listKey));
  /** The keys of each server, by a hash of their facts, the oldest first. */
  readonly #keysOf = memoized((_: ListKey) => new Map<string, ListKey>());
  /** For each key, the file that names the file with the latest lists of its server. */
  readonly #latest = new WeakMap<ListKey, string>();
  /** The server of each key. */
  readonly #servers = new WeakMap<ListKey, ListKey>();
  /** The servers that were started. */
  readonly #started = new WeakSet<ListKey>();
  /**
   * The last key that was returned for each server, because the next call mostly uses the same key.
   */
  readonly #lastKeys = new WeakMap<ListKey, ListFacts & { readonly listKey: ListKey }>();

  /** `home` is the PML home. Calls `onError` if a file cannot be written. */
  constructor(home: string, onError: (error: unknown) => void) {
    this.#folder = join(home, "lists");
    this.#onError = onError;
  }

  /**
   * Returns the key of the lists that a server has for a workspace and a set of client
   * capabilities. Only the last few keys of a server stay the same object, because a client can
   * declare any number of different capabilities.
   */
  keyOf(server: ListKey, facts: ListFacts): ListKey {
    const last = this.#lastKeys.get(server);
    if (last?.workspace === facts.workspace && last.capabilities === facts.capabilities) {
      return last.listKey;
    }
    const listKey = this.#newKeyOf(server, facts);
    this.#lastKeys.set(server, { ...facts, listKey });
    return listKey;
  }

  #newKeyOf(server: ListKey, facts: ListFacts): ListKey {
    const listKeys = this.#keysOf(server);
    const key = sha256(sortedJsonText([facts.workspace, facts.capabilities]));
    const { name, definition, hasFiles } = server;
    const listKey = listKeys.get(key) ?? { name, definition: [definition, key], hasFiles };
    listKeys.delete(key);
    listKeys.set(key, listKey);
    this.#servers.set(listKey, server);
    if (hasFiles) this.#latest.set(listKey, this.#latestOf(server, facts));
    const [[oldestHash, oldest] = []] = listKeys;
    // guard: able-sets
    if (listKeys.size > SETS_MAX && oldestHash !== undefined && oldest !== undefined) {
      listKeys.delete(oldestHash);
      this.#discard(this.#cachedOf(oldest));
    }
    return listKey;
  }

  /** Forgets lists of a server for all sets of client capabilities. */
  forgetAll(server: ListKey, lists: readonly ListName[]): void {
    for (const listKey of this.#keysOf(server).values()) {
      for (const list of lists) this.forget(listKey, list);
    }
  }

  /**
   * Returns a list: the same array until the list is forgotten. `ask` requests it from the server.
   */
  async get(
    listKey: ListKey,
    name: ListName,
    ask: () => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    const cached = this.#cachedOf(listKey);
    return cached.lists.get(name) ?? await this.renew(listKey, name, ask);
  }

  /** Loads a list again, although it is cached. The cached list stays until the answer arrives. */
  async renew(
    listKey: ListKey,
    name: ListName,
    ask: () => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    const cached = this.#cachedOf(listKey);
    const loading = cached.loading.get(name) ?? this.#load(cached, name, ask);
    cached.loading.set(name, loading);
    return await loading;
  }

  /** Removes a list from memory and from its file, so that it is loaded again. */
  forget(listKey: ListKey, name: ListName): void {
    const cached = this.#cachedOf(listKey);
    if (cached.lists.delete(name)) this.#write(cached);
    // A request that is still open may return the list from before the change.
    cached.loading.delete(name);
  }

  /**
   * Marks the cached lists of a server, for all sets of capabilities, as lists of an earlier
   * process. Called when the server was started.
   */
  markOld(listKey: ListKey): void {
    const server = this.#servers.get(listKey) ?? listKey;
    this.#started.add(server);
    for (const key of [listKey, ...this.#keysOf(server).values()]) {
      const cached = this.#cachedOf(key);
      cached.isOld = cached.lists.size > 0;
      cached.loadedAt.clear();
    }
  }

  /** Returns whether a list is cached. */
  has(listKey: ListKey, name: ListName): boolean {
    return this.#cachedOf(listKey).lists.has(name);
  }

  /** Returns a cached list; empty if it is not cached. */
  cached(listKey: ListKey, name: ListName): readonly ListItem[] {
    return this.#cachedOf(listKey).lists.get(name) ?? NONE;
  }

  /**
   * Returns the last list that the server sent, for whichever client; undefined if there is none,
   * or if the list of this key is cached.
   */
  earlierList(listKey: ListKey, name: ListName): readonly ListItem[] | undefined {
    const latest = this.#latest.get(listKey);
    if (latest === undefined || this.has(listKey, name)) return undefined;
    const files = objectOf(readCache(latest));
    const file = memberOf(files, name) ?? files.file;
    if (typeof file !== "string") return undefined;
    return listsAt(join(this.#folder, basename(file))).get(name);
  }

  /**
   * Returns the names of the lists that may have changed: lists older than `maxMs`, and lists from
   * an earlier process of the server. The latter are returned only at the first call after a start.
   */
  takeOld(listKey: ListKey, maxMs = Infinity): readonly ListName[] {
    const cached = this.#cachedOf(listKey);
    const { isOld, loadedAt, lists } = cached;
    cached.isOld = false;
    let old: ListName[] | undefined;
    for (const name of lists.keys()) {
      const since = loadedAt.get(name);
      // If only the files of a skill change, no notification reports that.
      const limitMs = name === "skills" ? Math.min(maxMs, FRESH_MS) : maxMs;
      const isTooOld = since === undefined
        ? isOld
        : limitMs !== Infinity && performance.now() - since > limitMs;
      if (isTooOld) (old ??= []).push(name);
    }
    return old ?? NO_NAMES;
  }

  async #load(
    cached: CachedLists,
    name: ListName,
    ask: () => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    // Waits one turn, so that `renew` has stored the promise of this load.
    await Promise.resolve();
    const thisLoad = cached.loading.get(name);
    try {
      const list = await ask();
      // If the list was forgotten meanwhile, it may already be out of date, so it is not cached.
      if (cached.loading.get(name) !== thisLoad) return list;
      cached.lists.set(name, list);
      cached.loadedAt.set(name, performance.now());
      this.#write(cached);
      this.#writeLatest(cached, name);
      return list;
    } finally {
      if (cached.loading.get(name) === thisLoad) cached.loading.delete(name);
    }
  }

  /** Writes the file of lists. If that fails, the next process loads the lists again. */
  #write({ file, lists }: CachedLists): void {
    if (file === undefined) return;
    try {
      writeCache(file, Object.fromEntries(lists));
      pruneCache(this.#folder, { like: file, most: FILES_MAX });
    } catch (error) {
      this.#onError(error);
    }
  }

  /** Writes the file that names, for each list of a server, the file with the latest one. */
  #writeLatest({ file, latest }: CachedLists, list: ListName): void {
    if (file === undefined || latest === undefined) return;
    try {
      const files = objectOf(readCache(latest));
      const name = basename(file);
      if (files.file === name && files[list] === name) return;
      // The file of a new client has only the lists that this client requested. Earlier versions
      // of PML wrote only the member `file`.
      const others = Object.fromEntries(
        LIST_NAMES.map((each) => [each, files[each] ?? files.file]),
      );
      writeCache(latest, { ...withoutUndefined(others), file: name, [list]: name });
      pruneCache(this.#folder, { like: latest, most: LATEST_MAX });
    } catch {
      // Without this file, `earlierList` finds no list for a client with other capabilities.
    }
  }

  /**
   * Removes the file of a dropped key, because the file would no longer follow changes of the
   * lists.
   */
  #discard(cached: CachedLists): void {
    if (cached.file !== undefined) removeIfPossible(cached.file);
    cached.file = undefined;
  }

  #open(listKey: ListKey): CachedLists {
    const { name, definition, hasFiles } = listKey;
    const file = hasFiles ? this.#fileOf(name, definition) : undefined;
    const latest = this.#latest.get(listKey);
    const lists = file === undefined ? new Map() : listsAt(file);
    // The file may be older than the start of the server.
    const isOld = lists.size > 0 && this.#started.has(this.#servers.get(listKey) ?? listKey);
    return { lists, loading: new Map(), loadedAt: new Map(), file, latest, isOld };
  }

  #fileOf(name: string, definition: unknown): string {
    return join(this.#folder, `${name}-${keyOf([name, definition])}.json`);
  }

  #latestOf({ name, definition }: ListKey, { workspace }: ListFacts): string {
    return join(this.#folder, `latest-${keyOf([name, definition, workspace])}.json`);
  }
}

function keyOf(facts: readonly unknown[]): string {
  return sha256(JSON.stringify([FORMAT_VERSION, ...facts])).slice(0, 32);
}

/** Reads the lists in a file. Numbers keep their exact text. */
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

/** A list of tools that arrived on a connection. */
export interface ListedTools {
  readonly tools: readonly ListItem[];
  /** When the list was requested, by `performance.now()`. */
  readonly requestedAt: number;
  /** How long the list stays current by its `ttlMs`, in milliseconds. */
  readonly ttlMs: number | undefined;
}
