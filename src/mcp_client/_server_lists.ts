/**
 * The lists of the servers that were started once: known until they change, and across starts.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import { canonical, isObject, type Json } from "../core/json.ts";
import { LIST_NAMES, type ListItem, type ListName, LISTS } from "../core/lists.ts";
import { memoized } from "../core/memo.ts";
import { drop, keep, prune, readKept } from "../io/kept.ts";

/** Whose list it is; the same object stands for the same lists. */
export interface ListOwner {
  readonly name: string;
  /** Everything that its lists depend on, and no secret. */
  readonly definition: unknown;
  /** Whether another process may be told what this one was. */
  readonly isKept: boolean;
}

interface Known {
  readonly lists: Map<ListName, readonly ListItem[]>;
  readonly asking: Map<ListName, Promise<readonly ListItem[]>>;
  /** When each was told. */
  readonly at: Map<ListName, number>;
  /** Undefined where nothing of it is kept, or it is one of the latest no more. */
  file: string | undefined;
  /** Whether it was told by a process of the server that is gone. */
  isOld: boolean;
}

const NONE: readonly ListItem[] = [];
/** For how many sets of a client's capabilities the lists of a server are known at once. */
const SETS_MAX = 8;
/** How many files a server has, in all workspaces. */
const FILES_MAX = 64;

/** Keeps lists by what defines their server. */
export class ServerLists {
  readonly #folder: string;
  readonly #onError: (error: unknown) => void;
  readonly #of = memoized((owner: ListOwner) => this.#open(owner));
  readonly #owners = memoized((_: ListOwner) => new Map<string, ListOwner>());

  /** Keeps them in a folder of the PML home; what cannot be kept is told to `onError`. */
  constructor(home: string, onError: (error: unknown) => void) {
    this.#folder = join(home, "lists");
    this.#onError = onError;
  }

  /**
   * Gives the owner of the lists that a server shows where this is so, a client's capabilities among
   * it: the same object as long as it is one of the last few, for a client can make up any number.
   */
  ownerOf(server: ListOwner, facts: Json): ListOwner {
    const owners = this.#owners(server);
    const key = sha256(canonical(facts));
    const { name, definition, isKept } = server;
    const owner = owners.get(key) ?? { name, definition: [definition, key], isKept };
    owners.delete(key);
    owners.set(key, owner);
    const [[oldest, old] = []] = owners;
    if (owners.size > SETS_MAX && oldest !== undefined && old !== undefined) {
      owners.delete(oldest);
      this.#leave(this.#of(old));
    }
    return owner;
  }

  /** Forgets lists of a server, whoever they were shown to. */
  forgetAll(server: ListOwner, lists: readonly ListName[]): void {
    for (const owner of this.#owners(server).values()) {
      for (const list of lists) this.forget(owner, list);
    }
  }

  /** Gives a list: the same array as long as nothing says that it has changed. */
  async get(
    owner: ListOwner,
    name: ListName,
    ask: () => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    const known = this.#of(owner);
    const list = known.lists.get(name);
    if (list !== undefined) return list;
    const asking = known.asking.get(name) ?? this.#ask(known, name, ask);
    known.asking.set(name, asking);
    return await asking;
  }

  /** Forgets a list, so that its server is asked again. */
  forget(owner: ListOwner, name: ListName): void {
    const known = this.#of(owner);
    known.lists.delete(name);
    // What is being answered may be from before the change.
    known.asking.delete(name);
  }

  /** Takes note that the server was started: what is known till now another process of it told. */
  outdate(owner: ListOwner): void {
    const known = this.#of(owner);
    known.isOld = known.lists.size > 0;
  }

  /** Gives what is known of a list. */
  known(owner: ListOwner, name: ListName): readonly ListItem[] {
    return this.#of(owner).lists.get(name) ?? NONE;
  }

  /**
   * Gives, once, the lists that another process of the server told, or that were told longer ago:
   * it may have others by now.
   */
  takeOld(owner: ListOwner, maxMs = Infinity): readonly ListName[] {
    const known = this.#of(owner);
    const { isOld, at, lists } = known;
    known.isOld = false;
    const least = performance.now() - maxMs;
    return [...lists.keys()].filter((name) => isOld || (at.get(name) ?? Infinity) < least);
  }

  async #ask(
    known: Known,
    name: ListName,
    ask: () => Promise<readonly ListItem[]>,
  ): Promise<readonly ListItem[]> {
    // A turn later, so that it stands among those that are asked.
    await Promise.resolve();
    const own = known.asking.get(name);
    try {
      const list = await ask();
      if (known.asking.get(name) !== own) return list;
      known.lists.set(name, list);
      known.at.set(name, performance.now());
      this.#keep(known);
      return list;
    } finally {
      if (known.asking.get(name) === own) known.asking.delete(name);
    }
  }

  /** What cannot be kept is asked for again by the next process. */
  #keep({ file, lists }: Known): void {
    if (file === undefined) return;
    try {
      keep(file, Object.fromEntries(lists));
      prune(this.#folder, { like: file, most: FILES_MAX });
    } catch (error) {
      this.#onError(error);
    }
  }

  /** Keeps nothing of it: nobody would tell that it has changed. */
  #leave(known: Known): void {
    if (known.file !== undefined) drop(known.file);
    known.file = undefined;
  }

  #open({ name, definition, isKept }: ListOwner): Known {
    const key = sha256(JSON.stringify([name, definition])).slice(0, 32);
    const file = isKept ? join(this.#folder, `${name}-${key}.json`) : undefined;
    const lists = file === undefined ? new Map() : listsOf(readKept(file));
    return { lists, asking: new Map(), at: new Map(), file, isOld: false };
  }
}

function listsOf(kept: unknown): Map<ListName, readonly ListItem[]> {
  const lists = new Map<ListName, readonly ListItem[]>();
  if (!isObject(kept)) return lists;
  for (const name of LIST_NAMES) {
    const list = kept[name];
    if (Array.isArray(list) && list.every((item) => isListItem(name, item))) lists.set(name, list);
  }
  return lists;
}

/** Tells whether a value may stand in a list; whether a tool can be used is looked at elsewhere. */
export function isListItem(
  name: ListName,
  value: unknown,
): value is ListItem & Record<string, unknown> {
  return isObject(value) && typeof value[LISTS[name].key] === "string";
}
