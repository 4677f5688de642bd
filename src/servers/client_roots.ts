/**
 * The roots of the client that started this PML.
 *
 * @module
 */

import { defined, isObject, type JsonObject } from "../core/json.ts";

/**
 * How many roots are passed on, and of characters of an address and of a name.
 */
const [ROOTS_MAX, URI_MAX, NAME_MAX] = [100, 4_096, 200];

/** Asks a client for its roots. Returns undefined if the client does not answer. */
export type AskForRoots = () => Promise<JsonObject | undefined>;

/** The roots of the only client. */
export class ClientRoots {
  /** The capability `roots` of the client; undefined if it has none. */
  capability: unknown;
  #ask: AskForRoots | undefined;
  #roots: Promise<readonly JsonObject[] | undefined> | undefined;
  readonly #listeners = new Set<() => void>();

  /** Takes the function that asks the client. */
  connect(ask: AskForRoots): void {
    this.#ask = ask;
  }

  /** Calls a function whenever the roots have changed. */
  listen(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Notes that the roots have changed. */
  changed(): void {
    this.#roots = undefined;
    for (const listener of this.#listeners) listener();
  }

  /** Returns the roots, which are cached until they change; undefined if the client has none. */
  async get(): Promise<readonly JsonObject[] | undefined> {
    if (this.#ask === undefined || !isObject(this.capability)) return undefined;
    const answer = this.#roots ??= this.#ask().then(rootsIn);
    const roots = await answer;
    // A client that did not answer is asked again.
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
    return [defined({ uri, name: typeof name === "string" ? name.slice(0, NAME_MAX) : undefined })];
  });
}
