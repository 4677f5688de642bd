/**
 * Converts requests of Node for the hub, and sends the answers.
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
  /** Aborts when the client disconnects before the answer is complete. */
  readonly signal: AbortSignal;
  /** Returns whether the client disconnected before the request was complete. */
  readonly isGone: () => boolean;
  /** Returns whether the answer was sent or the client has disconnected. */
  readonly isOver: () => boolean;
  /** Reads the body; undefined if it has more than `max` bytes. */
  readonly body: (max: number) => Promise<Uint8Array<ArrayBuffer> | undefined>;
}

/** The maximum number of large bodies of callers without a key that are read at once. */
const MAX_LARGE = 32;
/** Bodies with more bytes are large. */
const LARGE_BYTES = 64_000;

/** Thrown if a hub already reads its maximum number of large bodies. */
export class Busy extends Error {}

/** Bounds the bodies of callers without a key, so that slow uploads cannot fill the memory. */
export class BodyLimiter {
  #free = MAX_LARGE;

  /** Returns a request whose `body()` throws `Busy` if too many large bodies are being read. */
  limit(request: HubRequest): HubRequest {
    return { ...request, body: (max) => this.#read(request, max) };
  }

  async #read(request: HubRequest, max: number): ReturnType<HubRequest["body"]> {
    // A body without this header counts as large.
    if (Number(request.headers["content-length"]) <= LARGE_BYTES) return await request.body(max);
    if (this.#free === 0) throw new Busy();
    this.#free--;
    try {
      return await request.body(max);
    } finally {
      this.#free++;
    }
  }
}

/** An answer: `Response` if its body is a stream. */
export type HubResponse = RegistryResponse | Response;

/** Converts a request of Node. `response` shows when the client disconnects. */
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
    body: (max) => readBody(request, max),
  };
}

/** Returns whether a client disconnected before its request was complete. */
export function isGone({ destroyed, complete }: IncomingMessage): boolean {
  return destroyed && !complete;
}

async function readBody(
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
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}

/** Sends an answer. Closes the connection if the request was not read completely. */
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
  // The pipeline fails if the client disconnects, and then needs no more work.
  await pipeline(Readable.fromWeb(answer.body), response).catch(() => {});
}
