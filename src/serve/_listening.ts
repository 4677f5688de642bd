/**
 * The resources that a client of the newest revision listens for. The SDK answers such requests
 * itself and tells nobody of them.
 *
 * @module
 */

import { isObject, objectOf } from "../core/json.ts";
import type { Read } from "./_json_rpc.ts";

/** Knows the open requests to listen. */
export class Listening {
  readonly #open = new Map<string, readonly string[]>();

  /** Takes what the client sent; gives all resources that it listens for now, if that changed. */
  take(read: Read): readonly string[] | undefined {
    if (read.kind === "cancel") {
      return this.#open.delete(read.request) ? this.#all() : undefined;
    }
    if (read.kind !== "request" || !("method" in read.message)) return undefined;
    const { method, params } = read.message;
    if (method !== "subscriptions/listen" || !isObject(params)) return undefined;
    const { resourceSubscriptions: uris } = objectOf(params.notifications);
    const texts = Array.isArray(uris) ? uris.filter((uri) => typeof uri === "string") : [];
    if (texts.length === 0) return undefined;
    this.#open.set(read.id, texts);
    return this.#all();
  }

  #all(): readonly string[] {
    return [...new Set([...this.#open.values()].flat())];
  }
}
