/**
 * The roots of the client that started this PML.
 *
 * @module
 */

import { isObject, type JsonObject, withoutUndefined } from "../core/json.ts";

/** The maximum number of roots that are passed on, and the maximum lengths of URIs and names. */
const [ROOTS_MAX, URI_MAX, NAME_MAX] = [100, 4_096, 200];

/** Requests the roots of a client. Returns undefined if the client does not answer. */
export type AskForRoots = () => Promise<JsonObject | undefined>;

/** Requests and caches the roots of the only client. */
export class ClientRoots {
  /** The `roots` capability of the client; undefined if it declared none. */
  capability: unknown;
  #ask: AskForRoots | undefined;
  #roots: Promise<readonly JsonObject[] | undefined> | undefined;
  readonly #listeners = new Set<() => void>();

  /** Sets the function that requests the roots from the client. */
  connect(ask: AskForRoots): void {
    this.#ask = ask;
  }

  /** Calls a function whenever the roots have changed. */
  listen(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Clears the cache and calls the listeners, because the roots have changed. */
  onChanged(): void {
    this.#roots = undefined;
    for (const listener of this.#listeners) listener();
  }

  /** Returns the roots, which are cached until they change; undefined if the client has none. */
  async get(): Promise<readonly JsonObject[] | undefined> {
    if (this.#ask === undefined || !isObject(this.capability)) return undefined;
    const answer = this.#roots ??= this.#ask().then(rootsIn);
    const roots = await answer;
    // If the client did not answer, the next call requests the roots again.
    if (roots === undefined && this.#roots === answer) this.#roots = undefined;
    return roots;
  }
}

/** Reads the answer of a client to `roots/list`. */
function rootsIn(result: JsonObject | undefined): readonly JsonObject[] | undefined {
  if (!Array.isArray(result?.roots)) return undefined;
  return result.roots.slice(0, ROOTS_MAX).flatMap((one) => {
    const { uri, name } = isObject(one) ? one : {};
    if (typeof uri !== "string" || uri.length > URI_MAX) return [];
    return [
      withoutUndefined({
        uri,
        name: typeof name === "string" ? name.slice(0, NAME_MAX) : undefined,
      }),
    ];
  });
}
