/**
 * MCP over Streamable HTTP, for clients of every revision: `/mcp`, `/health` and `/ready`.
 *
 * The endpoint of an identity answers the messages. This module decides before that who may send a
 * request, how large it may be, and how long it may take.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { EVENTS_TYPE, JSON_TYPE } from "../../io/event_stream.ts";
import { listen, type Listener, type Names, refusedSender } from "../../io/listener.ts";
import { after, onAbort } from "../../io/waiting.ts";
import { STATELESS_REVISIONS } from "../../protocol/revisions.ts";
import { AcceptHeaders, inAccepted } from "./_accept.ts";
import { corsHeaders, preflight } from "./_cors.ts";
import {
  AnswerSender,
  eventBytes,
  leaving,
  type Rejection,
  rejection,
  type TextAnswer,
} from "./_answer.ts";
import { type ParsedBody, readBody } from "./_body.ts";
import { removeAnswered, unknownEnds } from "../_unknown_end.ts";
import type { HttpRequest } from "./_route.ts";
import type { EndpointLimits, HttpEndpoint } from "./endpoint.ts";

export type { HttpRequest };

/** Answers requests over HTTP. */
export interface HttpHost {
  /** Why PML cannot serve calls now; undefined if it is ready. */
  readonly problem: string | undefined;
  /** Returns the endpoint for an `Authorization` header; undefined refuses the request. */
  endpointFor(authorization: string): Promise<HttpEndpoint | undefined>;
  /** Answers a request, in this process or in another one. */
  answer(
    endpoint: HttpEndpoint,
    request: HttpRequest,
  ): Promise<Response | TextAnswer> | Response | TextAnswer;
  /** Reports a refused request with its status and the reason. */
  refused(status: number, why: string): void;
  /** Reports an error that belongs to no request. */
  failed(error: Error): void;
}

/** The options of `serveHttp`. */
export interface HttpOptions extends EndpointLimits {
  readonly host: string;
  /** The port; 0 selects a free one. */
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** The host names and origins that requests may use, in addition to names of this machine. */
  readonly names: Names;
  /** How long a client may read nothing before its connection is closed, in milliseconds. */
  readonly unreadMs: number;
}

/** The HTTP listener for clients. Disposing it closes all connections. */
export interface HttpListener extends Listener {
  /** The URL that clients configure. */
  readonly url: string;
}

const PATH = "/mcp";
/** The reason why a request without a valid token is refused. */
export const WRONG_TOKEN = "its token is missing or wrong";
/**
 * The share of the connections that one token may occupy, of those that other tokens leave free. A
 * new token therefore always gets a connection.
 */
const SHARE = 3 / 4;
/** How long clients have to read the last answers, in milliseconds. */
const LAST_MS = 500;

/** Serves clients until it is disposed. */
export async function serveHttp(host: HttpHost, options: HttpOptions): Promise<HttpListener> {
  const server = new HttpServer(host, options);
  const listener = await listen({
    ...options,
    what: "MCP",
    answer: (request, response) =>
      void server.answer(request, response).catch((error) => host.failed(error)),
    onRefused: (status, why) => host.refused(status, why),
  });
  return {
    ...listener,
    url: `${listener.origin}${PATH}`,
    drain: async (ms) => {
      using _ = after(ms, () => server.end());
      await listener.drain(ms + LAST_MS);
    },
  };
}

/** Decides which requests reach an endpoint, and sends the answers. */
class HttpServer {
  readonly #host: HttpHost;
  readonly #options: HttpOptions;
  readonly #answers: AnswerSender;
  readonly #accept = new AcceptHeaders();
  /**
   * The open requests: the endpoint, the body, and the messages of the body that are not answered.
   */
  readonly #open = new Map<
    ServerResponse,
    { readonly endpoint: HttpEndpoint; readonly body: unknown; readonly unanswered: unknown[] }
  >();
  /** The number of all requests whose answers are incomplete. */
  #openCount = 0;
  /** The endpoints whose end is observed. */
  readonly #endpoints = new WeakSet<HttpEndpoint>();

  constructor(host: HttpHost, options: HttpOptions) {
    this.#host = host;
    this.#answers = new AnswerSender(options);
    this.#options = options;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Requests are cancelled if the client disconnects before the answer.
    const signal = leaving(response);
    const cors = corsHeaders(request, this.#options.names.origins);
    for (const [name, value] of Object.entries(cors)) response.setHeader(name, value);
    response.once("close", () => this.#open.delete(response));
    const made = this.#refused(request) ??
      await this.#answerTo(request, { response, signal }).catch((error) => {
        this.#host.failed(error);
        return this.#refuse(500, "PML failed");
      });
    if (response.writableEnded) return;
    const unanswered = this.#open.get(response)?.unanswered ?? [];
    await this.#answers.send(
      response,
      made,
      (part) => removeAnswered(unanswered, new TextDecoder().decode(part)),
    );
  }

  /** Answers all open requests, because the process ends. */
  end(): void {
    for (const response of this.#open.keys()) this.#end(response);
  }

  /** Answers the open requests of an endpoint when it ends. */
  #follow(endpoint: HttpEndpoint): void {
    if (this.#endpoints.has(endpoint)) return;
    this.#endpoints.add(endpoint);
    onAbort(endpoint.ending.signal, () => {
      for (const [response, one] of this.#open) if (one.endpoint === endpoint) this.#end(response);
    });
  }

  #end(response: ServerResponse): void {
    if (response.writableEnded) return;
    const { body, unanswered } = this.#open.get(response) ?? {};
    const ends = unknownEnds(unanswered);
    if (response.headersSent) {
      for (const one of ends) response.write(eventBytes(JSON.stringify(one)));
    } else if (ends.length === 0) response.statusCode = 202;
    else {
      response.setHeader("content-type", JSON_TYPE);
      response.write(JSON.stringify(Array.isArray(body) ? ends : ends[0]));
    }
    response.end();
  }

  /** Returns the refusal of a request before its body is read. */
  #refused(request: IncomingMessage): Response | undefined {
    const { method = "" } = request;
    const path = pathOf(request);
    const sender = refusedSender(request, this.#options.names);
    if (sender !== undefined) return this.#refuse(sender, "it names another host or origin");
    if (path === "/health" || path === "/ready") {
      const isReady = path === "/health" || this.#host.problem === undefined;
      // Clients without a token must not learn about the configuration.
      const status = isReady ? "ok" : "not ready";
      return Response.json({ status }, { status: isReady ? 200 : 503 });
    }
    if (path !== PATH) return this.#refuse(404, `MCP is at ${PATH}`);
    // Only older revisions have sessions, with GET for streams and DELETE to end them.
    const isStateless = STATELESS_REVISIONS.includes(`${request.headers["mcp-protocol-version"]}`);
    const allow = isStateless ? "POST" : "GET, POST, DELETE";
    // A browser sends a preflight without a token, and for the headers of both revisions at once.
    const { origins } = this.#options.names;
    const preflightResponse = preflight(request, { origins, methods: "GET, POST, DELETE" });
    if (preflightResponse !== undefined) return preflightResponse;
    if (!allow.split(", ").includes(method)) {
      return this.#refuse(405, `its method is none of ${allow}`, { headers: { allow } });
    }
    return undefined;
  }

  async #answerTo(
    request: IncomingMessage,
    { response, signal }: { readonly response: ServerResponse; readonly signal: AbortSignal },
  ): Promise<Response | TextAnswer> {
    const { method = "", headers: { authorization = "" } } = request;
    const endpoint = await this.#host.endpointFor(authorization);
    if (endpoint === undefined) {
      return this.#refuse(401, WRONG_TOKEN, {
        headers: { "www-authenticate": "Bearer" },
      });
    }
    const accepted = await this.#accept.accepted(request.headers.accept);
    if (accepted === "neither" || accepted === "json" && method === "GET") {
      return this.#refuse(406, `it accepts neither ${JSON_TYPE} nor ${EVENTS_TYPE}`);
    }
    // guard: token-share
    if (endpoint.open >= (this.#options.connections - this.#openCount + endpoint.open) * SHARE) {
      return this.#refuse(503, "too many other requests with its token are open");
    }
    // A client that disconnected before the endpoint was open would be counted forever.
    // guard: token-left
    if (signal.aborted) return new Response();
    endpoint.open++;
    this.#openCount++;
    response.once("close", () => {
      endpoint.open--;
      this.#openCount--;
    });
    const read: ParsedBody = method === "POST"
      ? await readBody(request, { ...this.#options, coming: endpoint.coming })
      : {};
    if (read.refused !== undefined) return this.#refuse(...read.refused);
    // The endpoint may have ended while the body was read.
    const { signal: over } = endpoint.ending;
    if (over.aborted) return this.#refuse(401, "its token is no longer valid");
    this.#follow(endpoint);
    this.#open.set(response, {
      endpoint,
      body: read.json,
      unanswered: [read.json ?? []].flat(),
    });
    // The endpoint does not need the token.
    const { authorization: _, ...headers } = request.headers as Record<string, string>;
    const one = { method, headers, body: read.json, signal };
    const made = await inAccepted(await this.#host.answer(endpoint, one), accepted, signal);
    // Aborted requests do not count as rejected.
    if (made.status >= 400 && !signal.aborted && !over.aborted) {
      const { statusText: why } = made as Partial<Response>;
      this.#host.refused(made.status, why || "it violates the MCP specification");
    }
    return made;
  }

  #refuse(status: number, why: string, more: Omit<Rejection, "why"> = {}): Response {
    this.#host.refused(status, why);
    return rejection(status, { why, ...more });
  }
}

function pathOf({ url = "" }: IncomingMessage): string {
  return url.replace(/^[a-z]+:\/\/[^/?#]*/i, "").replace(/[?#].*/s, "");
}
