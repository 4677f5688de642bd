/**
 * The reference registry: an HTTP server that answers from a store.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { listen, type Listener, type Names, refusedSender } from "../io/listener.ts";
import { failure, type RegistryRequest, type RegistryResponse } from "./answers.ts";

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
export type Answerer = (asked: RegistryRequest) => Promise<RegistryResponse>;

const SILENT_MS = 60_000;

/** Starts a registry that listens until it is disposed. */
export async function openReference(
  answer: Answerer,
  options: ReferenceOptions,
): Promise<ReferenceRegistry> {
  const { onError } = options;
  let isLocal = true;
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const status = isLocal ? refusedSender(request, options) : undefined;
    const made = status === undefined
      ? answerOf(request, answer)
      : Promise.resolve(FOREIGN(status));
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

const FOREIGN = (status: 400 | 403) =>
  failure(status, "forbidden", { message: "This registry answers to this machine only" });
const FAILED = failure(500, "failed", { message: "The registry could not answer" });
