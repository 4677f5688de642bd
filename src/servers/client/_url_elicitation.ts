/**
 * Handles the error -32042 (URL elicitation required). The error lists pages that the user must
 * open before the request can run.
 *
 * @module
 */

import type { Call } from "../../protocol/call.ts";
import { dropOldest } from "../../core/memo.ts";
import { type JsonObject, listOf, objectOf, quoted, textOf, visible } from "../../core/json.ts";
import { onAbort, settlesWithin } from "../../io/waiting.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";

/** The maximum number of pages that PML opens for one error. */
const PAGES_MAX = 5;
/** The maximum length of an address or a message that PML shows, in characters. */
const SHOWN_MAX = 2_000;
/**
 * How long a request waits at most until the user has finished in the browser, in milliseconds.
 * Shorter than the default timeout of clients (60 s), so that the repeated request can return in
 * time. Servers need not report the end.
 */
const DONE_MS = 40_000;
/** The maximum number of finished pages that are remembered. */
const REMEMBERED_MAX = 100;

/** Returns the params of `elicitation/create` for each page that an error names. */
export function urlElicitationsOf(error: unknown): readonly JsonObject[] {
  if (!(error instanceof RpcError) || error.code !== ERROR.urlElicitationRequired) return [];
  return listOf(objectOf(error.data).elicitations).map(objectOf)
    .filter(({ url }) => /^https?:$/.test(URL.parse(textOf(url))?.protocol ?? ""))
    .slice(0, PAGES_MAX);
}

/**
 * Returns an error whose secrets were removed (`cleaned`), but with the addresses of pages as the
 * server wrote them in `error`: without a secret in it, an address would lead to another page.
 */
export function withAddresses(cleaned: unknown, error: unknown): unknown {
  const { code, data } = objectOf(error);
  if (code !== ERROR.urlElicitationRequired) return cleaned;
  const originals = listOf(objectOf(data).elicitations).map(objectOf);
  const fields = objectOf(cleaned);
  const elicitations = listOf(objectOf(fields.data).elicitations)
    .map((page, index) => ({
      ...objectOf(page),
      ...originals[index]?.url && { url: originals[index].url },
    }));
  return { ...fields, data: { ...objectOf(fields.data), elicitations } };
}

/**
 * Returns a line for each page that an error names, with its address and the message of the server.
 * Quotes the message, which could otherwise look like a message of PML.
 */
export function urlElicitationLines(error: unknown): string {
  return urlElicitationsOf(error).map(({ url, message }) => {
    const quote = textOf(message) && ` (${quoted(textOf(message), SHOWN_MAX)})`;
    const address = visible(URL.parse(textOf(url))?.href ?? "", SHOWN_MAX);
    return `\nThe server wants this page opened: ${address}${quote}`;
  }).join("");
}

/** Remembers which pages the user has finished, by server and elicitation id. */
export class FinishedElicitations {
  readonly #done = new Set<string>();
  /** Functions of waiting requests. Each is called with the key of each finished page. */
  readonly #waiting = new Set<(key: string) => void>();

  /** Notes that a page of a server is finished. */
  note(server: string, { elicitationId }: JsonObject): void {
    const key = `${server} ${textOf(elicitationId)}`;
    this.#done.add(key);
    dropOldest(this.#done, REMEMBERED_MAX);
    for (const onFinished of this.#waiting) onFinished(key);
  }

  /**
   * Asks the client to open the pages that an error names. Returns whether the user agreed to all
   * pages. Waits until the pages are finished, but at most 40 s: not every server reports that.
   */
  async open(error: unknown, server: string, call: Call): Promise<boolean> {
    const pages = urlElicitationsOf(error);
    if (pages.length === 0) return false;
    const { client: { onServerRequest, onOpen }, cancellation: { signal } } = call;
    if (onServerRequest === undefined || onOpen === undefined) return false;
    try {
      for (const page of pages) {
        const params = { ...page, mode: "url" };
        const request = { server, method: "elicitation/create", params, signal } as const;
        if ((await onServerRequest(request)).action !== "accept") return false;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      return false; // the rules or the client refuse the request, so the model gets the addresses
    }
    const keys = pages.map(({ elicitationId }) => `${server} ${textOf(elicitationId)}`);
    await this.#waitFor(new Set(keys), signal);
    return true;
  }

  /** Waits for pages. Several requests may wait for the same page. Throws if the signal aborts. */
  async #waitFor(keys: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const unfinished = keys.difference(this.#done);
    if (unfinished.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const onFinished = (key: string) => {
      unfinished.delete(key);
      if (unfinished.size === 0) resolve();
    };
    this.#waiting.add(onFinished);
    using _ = onAbort(signal, resolve);
    await settlesWithin(promise, DONE_MS);
    this.#waiting.delete(onFinished);
    signal.throwIfAborted();
  }
}
