/**
 * The reference registry: an HTTP server that answers from a store.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { listen, type Listener, type Names, refusedSender } from "../io/listener.ts";
import { errorResponse, type RegistryRequest, type RegistryResponse } from "./answers.ts";

/** The options of `openReference`. */
export interface ReferenceOptions extends Names {
  /** The address or the name of this machine. */
  readonly host: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
  /** Called with each error of the server. */
  readonly onError: (error: Error) => void;
}

/** A registry that is listening. */
export interface ReferenceRegistry extends Listener {
  /** The URL that clients configure. */
  readonly url: string;
}

/** Answers a request. */
export type Answerer = (request: RegistryRequest) => Promise<RegistryResponse>;

/** How long a connection may be silent before it is closed. */
const SILENT_MS = 60_000;

/**
 * Starts a registry that listens until it is disposed. If only this machine can reach it, requests
 * of web pages from elsewhere get 403. If `answer` rejects, the client gets 500, and `onError` gets
 * the error.
 *
 * @throws {PmlError} USAGE if it cannot listen.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { answer, openReference, type RegistryStore } from "@casys/pml/registry";
 *
 * const manifest = { fqdn: "weather", version: "1.0.0", type: "http" };
 * const weather = { fqdn: "weather", version: "1.0.0", manifest, immutable: true };
 * const store: RegistryStore = {
 *   entry: (fqdn) => Promise.resolve(fqdn === "weather" ? weather : undefined),
 *   page: () => Promise.resolve([weather]),
 * };
 * await using registry = await openReference((request) => answer(request, store), {
 *   host: "127.0.0.1",
 *   port: 0,
 *   onError: console.error,
 * });
 * const response = await fetch(`${registry.url}/weather`);
 * assert.deepEqual(await response.json(), manifest);
 * ```
 */
export async function openReference(
  answer: Answerer,
  options: ReferenceOptions,
): Promise<ReferenceRegistry> {
  const { onError } = options;
  let isLocal = true;
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const status = isLocal ? refusedSender(request, options) : undefined;
    const answered = status === undefined
      ? answerOf(request, answer)
      : Promise.resolve(foreignResponse(status));
    answered.catch((error) => {
      onError(error);
      return FAILED_RESPONSE;
    }).then((answered) => send(response, answered, request)).catch(onError);
  };
  const listener: Listener = await listen({
    ...options,
    what: "a registry",
    silentMs: SILENT_MS,
    answer: serve,
  });
  ({ isLocal } = listener);
  return { ...listener, url: `${listener.origin}/mcp` };
}

function answerOf(
  { method = "", url = "", headers }: IncomingMessage,
  answer: Answerer,
): Promise<RegistryResponse> {
  const { accept, "if-none-match": ifNoneMatch } = headers;
  return answer({ method, target: url, accept, ifNoneMatch });
}

function send(
  response: ServerResponse,
  { status, headers, body }: RegistryResponse,
  request: IncomingMessage,
) {
  // The body of a request with another method is not read.
  const isRead = request.method === "GET" || request.method === "HEAD";
  response.writeHead(status, isRead ? headers : { ...headers, connection: "close" });
  response.end(body);
}

const foreignResponse = (status: 400 | 403) =>
  errorResponse(status, "forbidden", { message: "This registry answers to this machine only" });
const FAILED_RESPONSE = errorResponse(500, "failed", { message: "The registry could not answer" });
