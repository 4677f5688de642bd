/**
 * The error -32042 (URL elicitation required): addresses that the user must open before a request.
 *
 * @module
 */

import type { Call } from "../../protocol/call.ts";
import { dropOldest } from "../../core/memo.ts";
import { type JsonObject, listOf, objectOf, quoted, textOf, visible } from "../../core/json.ts";
import { onAbort, soon } from "../../io/waiting.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";

/** The maximum number of pages of one error. */
const PAGES_MAX = 5;
/** The maximum length of an address or a message that an error shows, in characters. */
const SHOWN_MAX = 2_000;
/** How long a request waits for the user to finish in the browser, in milliseconds. */
const DONE_MS = 60_000;
/** How many pages that are done are remembered. */
const REMEMBERED_MAX = 100;

/** The params of `elicitation/create` for each page that an error names. */
export function urlElicitationsOf(error: unknown): readonly JsonObject[] {
  if (!(error instanceof RpcError) || error.code !== ERROR.urlElicitationRequired) return [];
  return listOf(objectOf(error.data).elicitations).map(objectOf)
    .filter(({ url }) => /^https?:$/.test(URL.parse(textOf(url))?.protocol ?? ""))
    .slice(0, PAGES_MAX);
}

/** Returns the error of a response with the addresses as its server wrote them. */
export function withAddresses(cleaned: unknown, error: unknown): unknown {
  const { code, data } = objectOf(error);
  if (code !== ERROR.urlElicitationRequired) return cleaned;
  const own = listOf(objectOf(data).elicitations).map(objectOf);
  const fields = objectOf(cleaned);
  // A URL without its key would lead to another page.
  const elicitations = listOf(objectOf(fields.data).elicitations)
    .map((one, at) => ({ ...objectOf(one), ...own[at]?.url && { url: own[at].url } }));
  return { ...fields, data: { ...objectOf(fields.data), elicitations } };
}

/**
 * Returns a line with the address for each page that an error names. The message of the server is
 * quoted: it could be taken for PML's own.
 */
export function urlElicitationLines(error: unknown): string {
  return urlElicitationsOf(error).map(({ url, message }) => {
    const quote = textOf(message) && ` (${quoted(textOf(message), SHOWN_MAX)})`;
    const address = visible(URL.parse(textOf(url))?.href ?? "", SHOWN_MAX);
    return `\nThe server wants this page opened: ${address}${quote}`;
  }).join("");
}

/** Remembers which pages users have finished, by the ids of their servers. */
export class FinishedElicitations {
  readonly #done = new Set<string>();
  /** The requests that wait. Each is called with the key of a finished page. */
  readonly #waiting = new Set<(key: string) => void>();

  /** Notes that a page of a server is finished. */
  note(server: string, { elicitationId }: JsonObject): void {
    const key = `${server} ${textOf(elicitationId)}`;
    this.#done.add(key);
    dropOldest(this.#done, REMEMBERED_MAX);
    for (const finished of this.#waiting) finished(key);
  }

  /**
   * Asks the client to open the pages that an error names. Returns whether the user agreed to all.
   * Waits until they are finished, at most a minute: not every server reports that.
   */
  async open(error: unknown, server: string, call: Call): Promise<boolean> {
    const pages = urlElicitationsOf(error);
    if (pages.length === 0) return false;
    const { client: { onAsk, onOpen }, cancellation: { signal } } = call;
    if (onAsk === undefined || onOpen === undefined) return false;
    try {
      for (const page of pages) {
        const params = { ...page, mode: "url" };
        const request = { server, method: "elicitation/create", params, signal } as const;
        if ((await onAsk(request)).action !== "accept") return false;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      return false; // the rules or the client refuse it, so the model gets the addresses
    }
    const keys = pages.map(({ elicitationId }) => `${server} ${textOf(elicitationId)}`);
    await this.#finished(new Set(keys), signal);
    return true;
  }

  /** Waits for pages. Several requests may wait for the same page. Throws if the signal aborts. */
  async #finished(keys: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const open = keys.difference(this.#done);
    if (open.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const finished = (key: string) => {
      open.delete(key);
      if (open.size === 0) resolve();
    };
    this.#waiting.add(finished);
    using _ = onAbort(signal, resolve);
    await soon(promise, DONE_MS);
    this.#waiting.delete(finished);
    signal.throwIfAborted();
  }
}
