/**
 * Answers requests of the stateless revision over HTTP. No request depends on an earlier request.
 *
 * @module
 */

import { textOf } from "../../core/json.ts";
import type { ClientPeer } from "../../protocol/connection.ts";
import { onAbort } from "../../io/waiting.ts";
import { separateReserved } from "../../protocol/envelope.ts";
import { answerText, errorText, type RequestMessage, resultText } from "../../protocol/message.ts";
import { messageWith } from "../../protocol/message_members.ts";
import { type ErrorObject, NO_SUCH_METHOD } from "../../protocol/errors.ts";
import { isDefinedMethod, STATELESS_REVISION, statelessPart } from "../../protocol/revisions.ts";
import type { Notification } from "../../protocol/subscriptions.ts";
import { eventBytes, statusOf, STREAM_HEADERS, TextAnswer } from "./_answer.ts";
import { type ListenHost, ListenStreams, type StreamLimits } from "./_listen_streams.ts";
import type { SessionHost } from "./_session.ts";
import type { HttpRequest, Route } from "./_route.ts";
import { OpenRequest, ResultTexts } from "../../protocol/open_request.ts";
import { serveRequest } from "../../protocol/rpc_peer.ts";

/** The parts of a request that its route does not contain. */
export type StatelessRequest = Pick<HttpRequest, "headers" | "signal">;

/**
 * How often a stream without events sends a keep-alive comment, in milliseconds, and the comment.
 */
const [KEEP_ALIVE_MS, KEEP_ALIVE] = [15_000, new TextEncoder().encode(": keepalive\n\n")];
/** The HTTP status of an answer to a client that has disconnected. The client does not get it. */
const STATUS_DISCONNECTED = 499;

/**
 * The client of one request. It declares everything in the request. PML sends notifications to the
 * streams on which the client listens, and not to this peer.
 */
const PEER: ClientPeer = {
  notification: () => Promise.resolve(),
  getClientCapabilities: () => ({}),
  getClientVersion: () => undefined,
  getNegotiatedProtocolVersion: () => STATELESS_REVISION,
  takesMembers: () => false,
  isBrief: true,
};

/** Answers the requests of one endpoint. */
export class HttpStateless implements Disposable {
  readonly #host: SessionHost;
  readonly #texts: ResultTexts;
  readonly #streams: ListenStreams;
  /** The functions that cancel the open requests. */
  readonly #cancelFunctions = new Set<() => void>();

  /** Creates an endpoint for a host. */
  constructor(host: SessionHost & ListenHost, limits: StreamLimits) {
    this.#host = host;
    this.#texts = new ResultTexts((isStateless) => host.hello(isStateless));
    this.#streams = new ListenStreams(host, limits, this.#texts);
  }

  /** Answers a request that belongs to no session. */
  answer(
    request: StatelessRequest,
    route: Exclude<Route, { readonly kind: "session" }>,
  ): Promise<Response | TextAnswer> | Response | TextAnswer {
    if (route.kind === "notification") return this.#handleNotification(route);
    if (route.kind === "refused") return errorAnswer(route, 400);
    const { id, message } = route;
    switch (statelessPart(textOf(message.method))) {
      case undefined:
        return errorAnswer({ id, error: NO_SUCH_METHOD }, 404);
      case "discover":
        return new TextAnswer(
          200,
          answerText(id, resultText(this.#texts.discoverResult())),
        );
      case "connection":
        return this.#serve(request, route);
      case "listen": {
        const opened = this.#streams.open(route, request.signal);
        return opened instanceof Response ? opened : errorAnswer({ id, error: opened }, 200);
      }
    }
  }

  /** Sends a notification to the streams that listen for it. */
  notify(notification: Notification): void {
    this.#streams.notify(notification);
  }

  #handleNotification(
    { method, params: rawParams, members }: Extract<Route, { readonly kind: "notification" }>,
  ): Response {
    if (!isDefinedMethod(method) || members !== undefined) {
      const connection = this.#host.connect(PEER, true);
      const { params, envelope } = separateReserved(rawParams);
      connection.handleNotification({ method, params, members, envelope });
      connection.close();
    }
    return new Response(null, { status: 202 });
  }

  #serve(
    request: StatelessRequest,
    read: RequestMessage,
  ): Promise<Response | TextAnswer> {
    const connection = this.#host.connect(PEER, true);
    const answer = new StatelessAnswer();
    const openRequest: OpenRequest = new OpenRequest(read, "stateless", {
      texts: this.#texts,
      connection: () => connection,
      answer: (id, members) => end(answerText(id, members)),
      notify: (notification) => {
        answer.send(messageWith(notification, openRequest.members !== undefined));
        return Promise.resolve();
      },
      ask: () =>
        Promise.reject(new Error("Requests of the stateless revision cannot ask the client")),
      takesMembers: () => openRequest.members !== undefined,
      headers: { get: (name) => request.headers[name] ?? null },
    });
    const abortListener = new DisposableStack();
    const end = (text?: string) => {
      abortListener.dispose();
      this.#cancelFunctions.delete(cancel);
      answer.end(text);
      connection.close();
    };
    const cancel = () => {
      openRequest.cancel(new Error("Connection closed"));
      end();
    };
    this.#cancelFunctions.add(cancel);
    if (request.signal.aborted) cancel();
    else {
      abortListener.use(onAbort(request.signal, cancel));
      void serveRequest(openRequest);
    }
    return answer.response;
  }

  /** Cancels all requests. */
  [Symbol.dispose](): void {
    for (const cancel of this.#cancelFunctions) cancel();
    this.#streams[Symbol.dispose]();
  }
}

function errorAnswer(
  { id, error }: { readonly id: string; readonly error: ErrorObject },
  status: number,
): TextAnswer {
  return new TextAnswer(status, answerText(id, errorText(error)));
}

/** An answer: JSON, or an event stream if a notification precedes it. */
class StatelessAnswer {
  readonly #response = Promise.withResolvers<Response | TextAnswer>();
  /** Resolves when the answer is complete, or when it becomes a stream. */
  readonly response = this.#response.promise;
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  #keepAliveTimer: ReturnType<typeof setInterval> | undefined;
  #hasEnded = false;

  /** Sends a notification. */
  send(message: object): void {
    if (!this.#hasEnded) this.#openStream().enqueue(eventBytes(JSON.stringify(message)));
  }

  /** Ends the answer, with a message as JSON or without one. */
  end(text?: string): void {
    if (this.#hasEnded) return;
    this.#finish();
    if (this.#stream === undefined) return this.#response.resolve(answerOf(text));
    if (text !== undefined) this.#stream.enqueue(eventBytes(text));
    this.#stream.close();
  }

  #finish(): void {
    this.#hasEnded = true;
    clearInterval(this.#keepAliveTimer);
  }

  #openStream(): ReadableStreamDefaultController<Uint8Array> {
    if (this.#stream !== undefined) return this.#stream;
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => void (this.#stream = stream),
      // After a cancellation, the stream accepts no data and cannot be closed.
      cancel: () => this.#finish(),
    });
    this.#response.resolve(new Response(body, { headers: STREAM_HEADERS }));
    this.#keepAliveTimer = setInterval(() => this.#stream?.enqueue(KEEP_ALIVE), KEEP_ALIVE_MS);
    Deno.unrefTimer(this.#keepAliveTimer);
    return this.#openStream();
  }
}

function answerOf(text: string | undefined): Response | TextAnswer {
  if (text === undefined) return new Response(null, { status: STATUS_DISCONNECTED });
  const error = text.startsWith('{"error"') && JSON.parse(text).error;
  return new TextAnswer(statusOf(error), text);
}
