/**
 * MCP over Streamable HTTP, for clients of every revision: `/mcp`, `/health`, `/ready`, and
 * `/metrics` if the user wants it.
 *
 * This module decides who may send a request, how large it may be, and how long it may take. Then the
 * endpoint (`HttpEndpoint`) of the identity to which the sender's token belongs answers the request.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { EVENTS_TYPE, JSON_TYPE } from "../../io/event_stream.ts";
import { listen, type Listener, type Names, refusedSender } from "../../io/listener.ts";
import { callAfter, onAbort } from "../../io/waiting.ts";
import { STATELESS_REVISIONS } from "../../protocol/revisions.ts";
import { AcceptHeaders, toAcceptedType } from "./_accept.ts";
import { corsHeaders, preflight } from "./_cors.ts";
import {
  AnswerSender,
  disconnectSignal,
  eventBytes,
  type Rejection,
  rejection,
  type TextAnswer,
} from "./_answer.ts";
import { type ParsedBody, readBody } from "./body.ts";
import { removeAnswered, unknownOutcomes } from "../_unknown_outcomes.ts";
import type { HttpRequest } from "./_route.ts";
import type { EndpointLimits, HttpEndpoint } from "./endpoint.ts";

export type { HttpRequest };

/** Answers requests for the metrics of a process. */
export interface HttpMetrics {
  /** Returns the metrics as text for an `Authorization` header; undefined refuses the request. */
  textFor(authorization: string): Promise<string | undefined>;
}

/** Answers requests over HTTP. */
export interface HttpHost {
  /** The metrics; undefined if the user has not turned them on. */
  readonly metrics?: HttpMetrics | undefined;
  /** Why PML cannot serve calls now; undefined if it is ready. */
  readonly problem: string | undefined;
  /** Returns the endpoint for an `Authorization` header; undefined refuses the request. */
  endpointFor(authorization: string): Promise<HttpEndpoint | undefined>;
  /** Answers a request, in this process or in another process of this PML. */
  answer(
    endpoint: HttpEndpoint,
    request: HttpRequest,
  ): Promise<Response | TextAnswer> | Response | TextAnswer;
  /** Reports a refused request with its status and the reason. */
  reportRefused(status: number, why: string): void;
  /** Reports an error that belongs to no request. */
  reportError(error: Error): void;
}

/** The options of `serveHttp`. */
export interface HttpOptions extends EndpointLimits {
  readonly host: string;
  /** The port; 0 selects a free one. */
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** The host names and origins that requests may use, in addition to names of this machine. */
  readonly names: Names;
  /** How long a client may read nothing before PML closes its connection, in milliseconds. */
  readonly unreadMs: number;
}

/** The type of the text of metrics. */
const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The HTTP listener for clients. Disposing it closes all connections. */
export interface HttpListener extends Listener {
  /** The URL that clients configure. */
  readonly url: string;
}

const MCP_PATH = "/mcp";
const METRICS_PATH = "/metrics";
/** The reason why a request without a valid token is refused. */
export const WRONG_TOKEN = "its token is missing or wrong";
/**
 * The requests of one token may occupy at most this share of the connections that the requests of
 * other tokens leave free. So a request with another token always gets a connection.
 */
const TOKEN_SHARE = 3 / 4;
/** How long clients have to read the last answers, in milliseconds. */
const LAST_READ_MS = 500;

/** Serves clients until it is disposed. */
export async function serveHttp(host: HttpHost, options: HttpOptions): Promise<HttpListener> {
  const server = new HttpServer(host, options);
  const listener = await listen({
    ...options,
    what: "MCP",
    answer: (request, response) =>
      void server.answer(request, response).catch((error) => host.reportError(error)),
    onRefused: (status, why) => host.reportRefused(status, why),
  });
  return {
    ...listener,
    url: `${listener.origin}${MCP_PATH}`,
    drain: async (ms) => {
      using _ = callAfter(ms, () => server.end());
      await listener.drain(ms + LAST_READ_MS);
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
   * The requests whose bodies PML has read: the endpoint, the body, and the messages of the body
   * without an answer.
   */
  readonly #readRequests = new Map<
    ServerResponse,
    { readonly endpoint: HttpEndpoint; readonly body: unknown; readonly unanswered: unknown[] }
  >();
  /** The number of all requests with a valid token whose answers are incomplete. */
  #openCount = 0;
  /** The endpoints whose end is observed. */
  readonly #observedEndpoints = new WeakSet<HttpEndpoint>();

  constructor(host: HttpHost, options: HttpOptions) {
    this.#host = host;
    this.#answers = new AnswerSender(options);
    this.#options = options;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Cancels the request if the client disconnects before the answer.
    const signal = disconnectSignal(response);
    const cors = corsHeaders(request, this.#options.names.origins);
    for (const [name, value] of Object.entries(cors)) response.setHeader(name, value);
    response.once("close", () => this.#readRequests.delete(response));
    const answer = this.#answerWithoutBody(request) ??
      await this.#answerTo(request, { response, signal }).catch((error) => {
        this.#host.reportError(error);
        return this.#refuse(500, "PML failed");
      });
    if (response.writableEnded) return;
    const unanswered = this.#readRequests.get(response)?.unanswered ?? [];
    await this.#answers.send(
      response,
      answer,
      (part) => removeAnswered(unanswered, new TextDecoder().decode(part)),
    );
  }

  /** Answers all open requests, because the process ends. */
  end(): void {
    for (const response of this.#readRequests.keys()) this.#end(response);
  }

  /** Makes the end of an endpoint answer its open requests. */
  #endRequestsWith(endpoint: HttpEndpoint): void {
    if (this.#observedEndpoints.has(endpoint)) return;
    this.#observedEndpoints.add(endpoint);
    onAbort(endpoint.ending.signal, () => {
      for (const [response, open] of this.#readRequests) {
        if (open.endpoint === endpoint) this.#end(response);
      }
    });
  }

  /** Answers each unanswered message of a request with an unknown outcome, and ends the response. */
  #end(response: ServerResponse): void {
    if (response.writableEnded) return;
    const { body, unanswered } = this.#readRequests.get(response) ?? {};
    const unknownAnswers = unknownOutcomes(unanswered);
    if (response.headersSent) {
      for (const unknownAnswer of unknownAnswers) {
        response.write(eventBytes(JSON.stringify(unknownAnswer)));
      }
    } else if (unknownAnswers.length === 0) response.statusCode = 202;
    else {
      response.setHeader("content-type", JSON_TYPE);
      response.write(JSON.stringify(Array.isArray(body) ? unknownAnswers : unknownAnswers[0]));
    }
    response.end();
  }

  /**
   * Answers a request that needs neither its body nor a token: a refusal, a health check or a
   * preflight. Returns undefined for all other requests.
   */
  #answerWithoutBody(request: IncomingMessage): Response | undefined {
    const { method = "" } = request;
    const path = pathOf(request);
    const refusedStatus = refusedSender(request, this.#options.names);
    if (refusedStatus !== undefined) {
      return this.#refuse(refusedStatus, "it names another host or origin");
    }
    if (path === "/health" || path === "/ready") {
      const isReady = path === "/health" || this.#host.problem === undefined;
      // Clients without a token must not learn about the configuration.
      const status = isReady ? "ok" : "not ready";
      return Response.json({ status }, { status: isReady ? 200 : 503 });
    }
    if (path === METRICS_PATH && this.#host.metrics !== undefined) {
      const headers = { allow: "GET" };
      return method === "GET" ? undefined : this.#refuse(405, "its method is not GET", { headers });
    }
    if (path !== MCP_PATH) return this.#refuse(404, `MCP is at ${MCP_PATH}`);
    // Only older revisions have sessions. GET opens a stream of a session, and DELETE ends a session.
    const isStateless = STATELESS_REVISIONS.includes(`${request.headers["mcp-protocol-version"]}`);
    const allow = isStateless ? "POST" : "GET, POST, DELETE";
    // A browser sends no token with a preflight. A preflight does not show the revision of the
    // client, so it allows the methods of all revisions.
    const { origins } = this.#options.names;
    const preflightResponse = preflight(request, { origins, methods: "GET, POST, DELETE" });
    if (preflightResponse !== undefined) return preflightResponse;
    if (!allow.split(", ").includes(method)) {
      return this.#refuse(405, `its method is none of ${allow}`, { headers: { allow } });
    }
    return undefined;
  }

  #refuseToken(): Response {
    return this.#refuse(401, WRONG_TOKEN, { headers: { "www-authenticate": "Bearer" } });
  }

  async #metricsFor(authorization: string): Promise<Response> {
    const text = await this.#host.metrics?.textFor(authorization);
    if (text === undefined) return this.#refuseToken();
    return new Response(text, { headers: { "content-type": PROMETHEUS_TYPE } });
  }

  async #answerTo(
    request: IncomingMessage,
    { response, signal }: { readonly response: ServerResponse; readonly signal: AbortSignal },
  ): Promise<Response | TextAnswer> {
    const { method = "", headers: { authorization = "" } } = request;
    if (pathOf(request) === METRICS_PATH) return await this.#metricsFor(authorization);
    const endpoint = await this.#host.endpointFor(authorization);
    if (endpoint === undefined) return this.#refuseToken();
    const accepted = await this.#accept.parse(request.headers.accept);
    if (accepted === "neither" || accepted === "json" && method === "GET") {
      return this.#refuse(406, `it accepts neither ${JSON_TYPE} nor ${EVENTS_TYPE}`);
    }
    // guard: token-share
    if (
      endpoint.openCount >=
        (this.#options.connections - this.#openCount + endpoint.openCount) * TOKEN_SHARE
    ) {
      return this.#refuse(503, "too many other requests with its token are open");
    }
    // After a client has disconnected, no "close" event follows that would decrease the counts.
    // guard: token-left
    if (signal.aborted) return new Response();
    endpoint.openCount++;
    this.#openCount++;
    response.once("close", () => {
      endpoint.openCount--;
      this.#openCount--;
    });
    const read: ParsedBody = method === "POST"
      ? await readBody(request, { ...this.#options, incomplete: endpoint.incomplete })
      : {};
    if (read.refused !== undefined) return this.#refuse(...read.refused);
    // The endpoint may have ended while PML read the body.
    const { signal: endpointEnd } = endpoint.ending;
    if (endpointEnd.aborted) return this.#refuse(401, "its token is no longer valid");
    this.#endRequestsWith(endpoint);
    this.#readRequests.set(response, {
      endpoint,
      body: read.json,
      unanswered: [read.json ?? []].flat(),
    });
    // The endpoint does not need the token.
    const { authorization: _, ...headers } = request.headers as Record<string, string>;
    const httpRequest = { method, headers, body: read.json, signal };
    const answer = await toAcceptedType(
      await this.#host.answer(endpoint, httpRequest),
      accepted,
      signal,
    );
    // Aborted requests do not count as rejected.
    if (answer.status >= 400 && !signal.aborted && !endpointEnd.aborted) {
      const { statusText: why } = answer as Partial<Response>;
      this.#host.reportRefused(answer.status, why || "it violates the MCP specification");
    }
    return answer;
  }

  #refuse(status: number, why: string, more: Omit<Rejection, "why"> = {}): Response {
    this.#host.reportRefused(status, why);
    return rejection(status, { why, ...more });
  }
}

function pathOf({ url = "" }: IncomingMessage): string {
  return url.replace(/^[a-z]+:\/\/[^/?#]*/i, "").replace(/[?#].*/s, "");
}
