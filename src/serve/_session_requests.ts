/**
 * Serves usual requests of a session over HTTP without the SDK. What takes longer than a moment, and
 * what the client is told or asked before its answer, goes on a stream of the SDK, whose rest a
 * client can ask for.
 *
 * @module
 */

import type {
  JSONRPCMessage,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { JsonObject } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import { ANY } from "../gateway/any_schema.ts";
import type { Connection } from "../gateway/connection.ts";
import { after } from "../io/waiting.ts";
import { TextAnswer } from "./_http_answer.ts";
import type { PostRequest } from "./_http_direct.ts";
import { classify } from "../protocol/message.ts";
import type { ResultTexts } from "./_result_texts.ts";
import { takesBoth, usualIn, UsualRequests } from "./_usual_requests.ts";

/** The options of `SessionRequests`. */
export interface SessionRequestsOptions {
  readonly transport: WebStandardStreamableHTTPServerTransport;
  /** The server that the transport is connected to. */
  readonly server: Server;
  readonly connection: Connection;
  readonly texts: ResultTexts;
  readonly onError: (error: Error) => void;
}

/** A request without an answer. */
interface Waiting {
  readonly requests: UsualRequests;
  /** Has a stream opened after a moment. */
  readonly moment: Disposable;
  /** Has the SDK open a stream for its answer, once. */
  readonly toStream: () => Promise<void>;
}

/** How long an answer may take that has no stream, in milliseconds. */
const MOMENT_MS = 50;

/** Serves the requests of one session. */
export class SessionRequests implements Disposable {
  readonly #options: SessionRequestsOptions;
  readonly #waiting = new Map<string, Waiting>();
  /** The requests for which the SDK only opens a stream. */
  readonly #served = new WeakSet<Request>();

  /** Takes a transport that is connected. */
  constructor(options: SessionRequestsOptions) {
    const { transport } = this.#options = options;
    const { onmessage: take } = transport;
    transport.onmessage = (message, extra) => {
      if (extra?.request && this.#served.has(extra.request)) return;
      const read = classify(message);
      if (read.kind === "cancel") this.#cancel(read.request, read.reason);
      take?.(message, extra);
    };
  }

  /** Answers a request; undefined, with nothing done, for one that is the SDK's. */
  answer(request: PostRequest, body: unknown): Promise<Response | TextAnswer> | undefined {
    const { headers } = request;
    const usual = usualIn(body, "legacy");
    const { server, connection, texts, transport, onError } = this.#options;
    if (usual === undefined || this.#waiting.has(usual.id)) return undefined;
    const isPlain = headers["mcp-protocol-version"] === server.getNegotiatedProtocolVersion() &&
      !headers["mcp-method"] && takesBoth(headers.accept);
    if (!isPlain) return undefined;
    const { id, params } = usual;
    const { promise, resolve, reject } = Promise.withResolvers<Response | TextAnswer>();
    let stream: Promise<void> | undefined;
    const toStream = () => stream ??= this.#stream(request, body).then(resolve, reject);
    const moment = after(MOMENT_MS, () => void toStream());
    const relatedRequestId = JSON.parse(id);
    const send = async (message: unknown) => {
      await toStream();
      await transport.send(message as JSONRPCMessage, { relatedRequestId });
    };
    const requests = new UsualRequests({
      texts,
      opened: () => connection,
      connect: () => Promise.resolve(connection),
      answer: (_, said) => {
        this.#ended(id);
        const text = `{${said},"jsonrpc":"2.0","id":${id}}`;
        if (stream === undefined) resolve(new TextAnswer(200, text));
        else send(parseExact(text)).catch(onError);
      },
      notify: (one) => send({ jsonrpc: "2.0", ...one }),
      ask: async (method, params, { signal, ms }) => {
        await toStream();
        const options = { signal, timeout: ms, relatedRequestId };
        return await server.request({ method, params }, ANY, options) as JsonObject;
      },
    });
    this.#waiting.set(id, { requests, moment, toStream });
    requests.take(params, usual);
    return promise;
  }

  /** Cancels all requests. */
  [Symbol.dispose](): void {
    for (const id of this.#waiting.keys()) this.#cancel(id, new Error("Connection closed"));
  }

  /** Has the SDK open the stream for the answer to a request. */
  async #stream(request: PostRequest, body: unknown): Promise<Response> {
    const web = request.web();
    this.#served.add(web);
    return await this.#options.transport.handleRequest(web, { parsedBody: body });
  }

  #cancel(id: string, reason: unknown): void {
    const waiting = this.#ended(id);
    waiting?.requests.cancel(id, reason);
    // Nothing is answered: the stream stays open until its client leaves it, or the session ends.
    void waiting?.toStream();
  }

  /** Takes a request out, and returns it. */
  #ended(id: string): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    waiting?.moment[Symbol.dispose]();
    this.#waiting.delete(id);
    return waiting;
  }
}
