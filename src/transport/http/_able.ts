/**
 * The combined capabilities of the clients over HTTP. A server of an older revision receives them
 * only once, in its handshake, for all clients.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, memberOf, sorted } from "../../core/json.ts";

/** How long the capabilities of a client count after the last request that declares them. */
const KEPT_MS = 10 * 60_000;
/**
 * The maximum number of different sets of capabilities. The least recently declared ones are
 * removed.
 */
const MOST = 32;

/** Collects the capabilities of clients. */
export class Able {
  readonly #all = new Map<string, { readonly said: JsonObject; readonly until: number }>();
  readonly #onChange: (together: JsonObject) => void;
  #told = "";

  /** Calls `onChange` with the combined capabilities whenever they change. */
  constructor(onChange: (together: JsonObject) => void) {
    this.#onChange = onChange;
  }

  /** Adds the capabilities of a client. */
  take(said: JsonObject): void {
    const now = performance.now();
    const key = sorted(said);
    // Every request declares the capabilities, so most calls change nothing.
    if ((this.#all.get(key)?.until ?? 0) > now + KEPT_MS / 2) return;
    this.#all.delete(key);
    this.#all.set(key, { said, until: now + KEPT_MS });
    for (const [other, { until }] of this.#all) {
      if (until < now || this.#all.size > MOST) this.#all.delete(other);
    }
    const together = [...this.#all.values()].map(({ said }) => said).reduce(joined, {});
    const told = sorted(together);
    if (told === this.#told) return;
    this.#told = told;
    this.#onChange(together);
  }
}

/** Merges objects recursively. If both have a value that is no object, the first one wins. */
function joined(one: JsonObject, other: JsonObject): JsonObject {
  const all: Record<string, Json> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const known = memberOf(one, key);
    if (isObject(known) && isObject(value)) {
      all[key] = joined(known as JsonObject, value as JsonObject); // parsed JSON
    } else if (known === undefined) all[key] = value;
  }
  return all;
}
