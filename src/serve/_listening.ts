/**
 * The resources that a client of the newest revision listens for. The SDK answers such requests
 * itself and tells nobody of them.
 *
 * @module
 */

import { isObject, objectOf } from "../core/json.ts";
import type { Read } from "./_json_rpc.ts";

type Request = Extract<Read, { readonly kind: "request" }>;

/** Knows the open requests to listen. */
export class Listening {
  readonly #open = new Map<string, readonly string[]>();

  /** Takes a request; gives all resources that the client listens for now, if that changed. */
  take({ message, id }: Request): readonly string[] | undefined {
    if (!("method" in message)) return undefined;
    const { method, params } = message;
    if (method !== "subscriptions/listen" || !isObject(params)) return undefined;
    const { resourceSubscriptions: uris } = objectOf(params.notifications);
    const texts = Array.isArray(uris) ? uris.filter((uri) => typeof uri === "string") : [];
    if (texts.length === 0) return undefined;
    this.#open.set(id, texts);
    return this.#all();
  }

  /** Takes note that a request is over; gives the same. */
  end(id: string): readonly string[] | undefined {
    return this.#open.delete(id) ? this.#all() : undefined;
  }

  #all(): readonly string[] {
    return [...new Set([...this.#open.values()].flat())];
  }
}
