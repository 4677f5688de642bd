/**
 * The requests of a hub, and how answers are sent.
 *
 * @module
 */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { RegistryRequest, RegistryResponse } from "@casys/pml/registry";

/** A request to a hub. */
export interface HubRequest extends RegistryRequest {
  /** The headers, by their names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Aborted when the client has gone before all was sent. */
  readonly signal: AbortSignal;
  /** Returns whether the client went away before it had sent all. That is no failure of the hub. */
  readonly isGone: () => boolean;
  /** Returns whether the connection is done with the answer: it was sent, or the client has gone. */
  readonly isOver: () => boolean;
  /** Reads the body; undefined if it has more than `max` bytes. */
  readonly body: (max: number) => Promise<Uint8Array<ArrayBuffer> | undefined>;
}

/** How many large bodies of callers without a key are read at once, and from which size on. */
const [MOST_LARGE, LARGE] = [32, 64_000];

/** Is thrown where a hub reads enough large bodies already. */
export class Busy extends Error {}

/** Bounds the bodies of callers without a key, so that slow uploads cannot fill the memory. */
export class OpenBodies {
  #places = MOST_LARGE;

  /** Returns a request whose body is read in its turn. Reading throws `Busy` where there is none. */
  of(request: HubRequest): HubRequest {
    return { ...request, body: (max) => this.#read(request, max) };
  }

  async #read(request: HubRequest, max: number): ReturnType<HubRequest["body"]> {
    if (Number(request.headers["content-length"]) <= LARGE) return await request.body(max);
    if (this.#places === 0) throw new Busy();
    this.#places--;
    try {
      return await request.body(max);
    } finally {
      this.#places++;
    }
  }
}

/** The whole answer, or one whose body is a stream. */
export type HubResponse = RegistryResponse | Response;

/** Parses a request. */
export function requestOf(request: IncomingMessage, response: ServerResponse): HubRequest {
  const { method = "", url: target = "", headers } = request;
  const { accept, "if-none-match": ifNoneMatch } = headers;
  const gone = new AbortController();
  let isOver = false;
  response.once("close", () => {
    isOver = true;
    if (!response.writableFinished) gone.abort();
  });
  return {
    method,
    target,
    accept,
    ifNoneMatch,
    headers,
    signal: gone.signal,
    isGone: () => isGone(request),
    isOver: () => isOver,
    body: (max) => bodyOf(request, max),
  };
}

/** Returns whether a client went away before it had sent all. */
export function isGone({ destroyed, complete }: IncomingMessage): boolean {
  return destroyed && !complete;
}

async function bodyOf(
  request: IncomingMessage,
  max: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (Number(request.headers["content-length"] ?? 0) > max) return undefined;
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Uint8Array>) {
    length += part.length;
    if (length > max) return undefined;
    parts.push(part);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Sends an answer. A connection is kept only if all of the request was read. */
export async function send(
  response: ServerResponse,
  answer: HubResponse,
  request: IncomingMessage,
): Promise<void> {
  const isRead = request.method === "GET" || request.method === "HEAD" || request.readableEnded;
  const more = isRead ? {} : { connection: "close" };
  if (!(answer instanceof Response)) {
    response.writeHead(answer.status, { ...answer.headers, ...more });
    response.end(answer.body);
    return;
  }
  response.writeHead(answer.status, { ...Object.fromEntries(answer.headers), ...more });
  if (answer.body === null) return void response.end();
  // A client that goes away ends the stream.
  await pipeline(Readable.fromWeb(answer.body), response).catch(() => {});
}
