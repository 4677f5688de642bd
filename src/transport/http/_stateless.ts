/**
 * Answers requests of the stateless revision over HTTP. Each request is independent of the others.
 *
 * @module
 */

import { textOf } from "../../core/json.ts";
import type { ClientPeer } from "../../protocol/connection.ts";
import { onAbort } from "../../io/waiting.ts";
import { lift } from "../../protocol/envelope.ts";
import { answerText, errorText, type RequestMessage, resultText } from "../../protocol/message.ts";
import { messageWith } from "../../protocol/message_members.ts";
import { type ErrorObject, NO_SUCH_METHOD } from "../../protocol/errors.ts";
import { isDefined, STATELESS_REVISION, statelessPart } from "../../protocol/revisions.ts";
import type { Notification } from "../../protocol/subscriptions.ts";
import { eventBytes, statusOf, STREAM_HEADERS, TextAnswer } from "./_answer.ts";
import { type ListenHost, ListenStreams, type StreamLimits } from "./_listen_streams.ts";
import type { SessionHost } from "./_session.ts";
import type { HttpRequest, Route } from "./_route.ts";
import { ResultTexts } from "../../protocol/result_texts.ts";
import { OpenRequest } from "../../protocol/open_request.ts";
import { served } from "../../protocol/rpc_peer.ts";

/** The parts of a request that its route does not contain. */
export type StatelessRequest = Pick<HttpRequest, "headers" | "signal">;

/**
 * How often a stream without events sends a keep-alive comment, in milliseconds, and the comment.
 */
const [ALIVE_MS, ALIVE] = [15_000, new TextEncoder().encode(": keepalive\n\n")];
/** The status of an answer to a client that has disconnected. */
const GONE = 499;

/**
 * The client of one request, which declares everything in the request. Notifications are sent to
 * its listening streams.
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
  readonly #open = new Set<() => void>();

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
    if (route.kind === "notification") return this.#note(route);
    if (route.kind === "refused") return refused(route, 400);
    const { id, message } = route;
    switch (statelessPart(textOf(message.method))) {
      case undefined:
        return refused({ id, error: NO_SUCH_METHOD }, 404);
      case "discover":
        return new TextAnswer(
          200,
          answerText(id, resultText(this.#texts.discovered())),
        );
      case "connection":
        return this.#serve(request, route);
      case "listen": {
        const opened = this.#streams.open(route, request.signal);
        return opened instanceof Response ? opened : refused({ id, error: opened }, 200);
      }
    }
  }

  /** Sends a notification to the streams that listen for it. */
  notify(notification: Notification): void {
    this.#streams.notify(notification);
  }

  #note(
    { method, params: rawParams, members }: Extract<Route, { readonly kind: "notification" }>,
  ): Response {
    if (!isDefined(method) || members !== undefined) {
      const connection = this.#host.connect(PEER, true);
      const { params, envelope } = lift(rawParams);
      connection.note({ method, params, members, envelope });
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
    const open: OpenRequest = new OpenRequest(read, "stateless", {
      texts: this.#texts,
      connection: () => connection,
      answer: (id, members) => end(answerText(id, members)),
      notify: (one) => {
        answer.tell(messageWith(one, open.members !== undefined));
        return Promise.resolve();
      },
      ask: () =>
        Promise.reject(new Error("Requests of the stateless revision cannot ask the client")),
      takesMembers: () => open.members !== undefined,
      headers: { get: (name) => request.headers[name] ?? null },
    });
    const waiting = new DisposableStack();
    const end = (text?: string) => {
      waiting.dispose();
      this.#open.delete(gone);
      answer.end(text);
      connection.close();
    };
    const gone = () => {
      open.cancel(new Error("Connection closed"));
      end();
    };
    this.#open.add(gone);
    if (request.signal.aborted) gone();
    else {
      waiting.use(onAbort(request.signal, gone));
      void served(open);
    }
    return answer.response;
  }

  /** Cancels all requests. */
  [Symbol.dispose](): void {
    for (const cancel of this.#open) cancel();
    this.#streams[Symbol.dispose]();
  }
}

function refused(
  { id, error }: { readonly id: string; readonly error: ErrorObject },
  status: number,
): TextAnswer {
  return new TextAnswer(status, answerText(id, errorText(error)));
}

/** An answer: JSON, or an event stream if a notification precedes it. */
class StatelessAnswer {
  readonly #made = Promise.withResolvers<Response | TextAnswer>();
  /** Resolves when the answer is complete, or when it becomes a stream. */
  readonly response = this.#made.promise;
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  #alive: ReturnType<typeof setInterval> | undefined;
  #isOver = false;

  /** Sends a notification. */
  tell(message: object): void {
    if (!this.#isOver) this.#opened().enqueue(eventBytes(JSON.stringify(message)));
  }

  /** Ends the answer, with a message as JSON or without one. */
  end(text?: string): void {
    if (this.#isOver) return;
    this.#over();
    if (this.#stream === undefined) return this.#made.resolve(answerOf(text));
    if (text !== undefined) this.#stream.enqueue(eventBytes(text));
    this.#stream.close();
  }

  #over(): void {
    this.#isOver = true;
    clearInterval(this.#alive);
  }

  #opened(): ReadableStreamDefaultController<Uint8Array> {
    if (this.#stream !== undefined) return this.#stream;
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => void (this.#stream = stream),
      // After a cancellation, the stream accepts no data and cannot be closed.
      cancel: () => this.#over(),
    });
    this.#made.resolve(new Response(body, { headers: STREAM_HEADERS }));
    this.#alive = setInterval(() => this.#stream?.enqueue(ALIVE), ALIVE_MS);
    Deno.unrefTimer(this.#alive);
    return this.#opened();
  }
}

function answerOf(text: string | undefined): Response | TextAnswer {
  if (text === undefined) return new Response(null, { status: GONE });
  const error = text.startsWith('{"error"') && JSON.parse(text).error;
  return new TextAnswer(statusOf(error), text);
}
