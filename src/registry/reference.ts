/**
 * The reference registry: an HTTP server that answers from a store.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { listen, type Listener, refusedSender } from "../io/listener.ts";
import { answer, failure, type RegistryResponse } from "./answers.ts";
import type { RegistryStore } from "./registry_store.ts";

/** The options of `openReference`. */
export interface ReferenceOptions {
  readonly host: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
  readonly onError: (error: Error) => void;
}

/** A registry that is listening. */
export interface ReferenceRegistry extends AsyncDisposable {
  /** The URL that clients configure. */
  readonly url: string;
  /** Whether only this machine can reach it. */
  readonly isLocal: boolean;
}

const SILENT_MS = 60_000;

/** Starts a registry that listens until it is disposed. */
export async function openReference(
  store: RegistryStore,
  options: ReferenceOptions,
): Promise<ReferenceRegistry> {
  const { onError } = options;
  let isLocal = true;
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const status = isLocal ? refusedSender(request) : undefined;
    const made = status === undefined ? answerOf(request, store) : Promise.resolve(FOREIGN(status));
    made.catch((error) => {
      onError(error);
      return FAILED;
    }).then((made) => send(response, made, request)).catch(onError);
  };
  const listener: Listener = await listen({
    ...options,
    what: "a registry",
    silentMs: SILENT_MS,
    answer: serve,
  });
  ({ isLocal } = listener);
  return {
    url: `${listener.origin}/mcp`,
    isLocal,
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

function answerOf(
  { method = "", url = "", headers }: IncomingMessage,
  store: RegistryStore,
): Promise<RegistryResponse> {
  const { accept, "if-none-match": ifNoneMatch } = headers;
  return answer({ method, target: url, accept, ifNoneMatch }, store);
}

function send(
  response: ServerResponse,
  { status, headers, body }: RegistryResponse,
  request: IncomingMessage,
) {
  // The body of a refused request is not read.
  const isRead = request.method === "GET" || request.method === "HEAD";
  response.writeHead(status, isRead ? headers : { ...headers, connection: "close" });
  response.end(body);
}

const FOREIGN = (status: 400 | 403) =>
  failure(status, "forbidden", { message: "This registry answers to this machine only" });
const FAILED = failure(500, "failed", { message: "The registry could not answer" });
