/**
 * The combined capabilities of the clients over HTTP. A server of an older revision receives them
 * only once, in its handshake, for all clients.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, memberOf, sorted } from "../../core/json.ts";

/** How long capabilities count after the last request, or the end of the connection, with them. */
const KEPT_MS = 10 * 60_000;
/**
 * The maximum number of different sets of capabilities. The least recently declared ones are
 * removed.
 */
const MOST = 32;

interface CapabilitySet {
  readonly capabilities: JsonObject;
  until: number;
  /** The number of connected clients that declared them when they connected. */
  holders: number;
}

/** Collects the capabilities of clients. */
export class Able {
  readonly #all = new Map<string, CapabilitySet>();
  readonly #onChange: (together: JsonObject) => void;
  #reported = "";

  /** Calls `onChange` with the combined capabilities whenever they change. */
  constructor(onChange: (together: JsonObject) => void) {
    this.#onChange = onChange;
  }

  /** Adds the capabilities that a request declares. */
  take(capabilities: JsonObject): void {
    this.#add(capabilities);
  }

  /** Adds the capabilities of a client that declares them once. They count until it is disposed. */
  hold(capabilities: JsonObject): Disposable {
    const set = this.#add(capabilities);
    set.holders++;
    const stack = new DisposableStack();
    stack.defer(() => {
      set.holders--;
      set.until = performance.now() + KEPT_MS;
    });
    return stack;
  }

  #add(capabilities: JsonObject): CapabilitySet {
    const now = performance.now();
    const key = sorted(capabilities);
    const existingSet = this.#all.get(key);
    // Every request declares the capabilities, so most calls change nothing.
    if (existingSet !== undefined && existingSet.until > now + KEPT_MS / 2) return existingSet;
    const set = existingSet ?? { capabilities: capabilities, until: 0, holders: 0 };
    set.until = now + KEPT_MS;
    this.#all.delete(key);
    this.#all.set(key, set);
    for (const [other, { until, holders }] of this.#all) {
      const isOver = holders === 0 && until < now;
      if (isOver || this.#all.size > MOST) this.#all.delete(other);
    }
    this.#tell();
    return set;
  }

  #tell(): void {
    const sets = [...this.#all.values()].map(({ capabilities }) => capabilities);
    // Clients may mean different things by an experimental capability.
    const isShared = new Set(sets.map(({ experimental = {} }) => sorted(experimental))).size > 1;
    const own = isShared ? sets.map(({ experimental: _, ...others }) => others) : sets;
    const together = own.reduce(joined, {});
    const text = sorted(together);
    if (text === this.#reported) return;
    this.#reported = text;
    this.#onChange(together);
  }
}

/** Merges objects recursively. If both have a value that is no object, the first one wins. */
function joined(one: JsonObject, other: JsonObject): JsonObject {
  const all: Record<string, Json> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const member = memberOf(one, key);
    if (isObject(member) && isObject(value)) {
      all[key] = joined(member as JsonObject, value as JsonObject); // parsed JSON
    } else if (member === undefined) all[key] = value;
  }
  return all;
}
