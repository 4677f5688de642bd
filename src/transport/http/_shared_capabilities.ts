/**
 * The combined capabilities of the clients over HTTP. A server of an older revision receives
 * capabilities only once, in its handshake, so PML sends it those of all clients.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, memberOf, sortedJsonText } from "../../core/json.ts";

/**
 * How long capabilities count after the last request or connection that declared them, in
 * milliseconds.
 */
const VALID_MS = 10 * 60_000;
/** The maximum number of different sets. The least recently declared set is removed first. */
const SETS_MAX = 32;

/** Capabilities that at least one client has declared. */
interface CapabilitySet {
  readonly capabilities: JsonObject;
  /** Until when they count without a connected client, by `performance.now()`. */
  until: number;
  /** The number of connected clients that declared them when they connected. */
  holderCount: number;
}

/** Collects the capabilities of clients. */
export class SharedCapabilities {
  readonly #all = new Map<string, CapabilitySet>();
  readonly #onChange: (together: JsonObject) => void;
  #reported = "";

  /** Calls `onChange` with the combined capabilities whenever they change. */
  constructor(onChange: (together: JsonObject) => void) {
    this.#onChange = onChange;
  }

  /** Adds the capabilities that a request declares. */
  addForRequest(capabilities: JsonObject): void {
    this.#add(capabilities);
  }

  /**
   * Adds the capabilities of a client that declares them once, for its connection. They count until
   * the returned object is disposed.
   */
  hold(capabilities: JsonObject): Disposable {
    const set = this.#add(capabilities);
    set.holderCount++;
    const stack = new DisposableStack();
    stack.defer(() => {
      set.holderCount--;
      set.until = performance.now() + VALID_MS;
    });
    return stack;
  }

  #add(capabilities: JsonObject): CapabilitySet {
    const now = performance.now();
    const key = sortedJsonText(capabilities);
    const existingSet = this.#all.get(key);
    // Every request declares the capabilities, so most calls change nothing.
    if (existingSet !== undefined && existingSet.until > now + VALID_MS / 2) return existingSet;
    const set = existingSet ?? { capabilities, until: 0, holderCount: 0 };
    set.until = now + VALID_MS;
    this.#all.delete(key);
    this.#all.set(key, set);
    for (const [other, { until, holderCount }] of this.#all) {
      const isUnused = holderCount === 0 && until < now;
      if (isUnused || this.#all.size > SETS_MAX) this.#all.delete(other);
    }
    this.#reportChange();
    return set;
  }

  #reportChange(): void {
    const sets = [...this.#all.values()].map(({ capabilities }) => capabilities);
    // Clients may mean different things by an experimental capability, so these count only if all
    // clients declare the same.
    const hasConflict =
      new Set(sets.map(({ experimental = {} }) => sortedJsonText(experimental))).size > 1;
    const combinable = hasConflict ? sets.map(({ experimental: _, ...others }) => others) : sets;
    const combined = combinable.reduce(mergeObjects, {});
    const text = sortedJsonText(combined);
    if (text === this.#reported) return;
    this.#reported = text;
    this.#onChange(combined);
  }
}

/** Merges objects recursively. The first object wins if values differ and are not both objects. */
function mergeObjects(one: JsonObject, other: JsonObject): JsonObject {
  const all: Record<string, Json> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const member = memberOf(one, key);
    if (isObject(member) && isObject(value)) {
      all[key] = mergeObjects(member as JsonObject, value as JsonObject); // parsed JSON
    } else if (member === undefined) all[key] = value;
  }
  return all;
}
