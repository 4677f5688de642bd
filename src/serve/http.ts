/**
 * MCP over Streamable HTTP, for clients of every revision: `/mcp`, `/health` and `/ready`.
 *
 * The SDK's handlers answer the messages. Everything before that is decided here: who may send a
 * request, how large it may be, and how long it may take.
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import {
  createMcpHandler,
  isLegacyRequest,
  type JSONRPCMessage,
  type McpServerFactory,
  type ServerNotifier,
} from "@modelcontextprotocol/server";
import { isObject, type JsonObject } from "../core/json.ts";
import { listen, type Listener as Listens, type Names, refusedSender } from "../io/listener.ts";
import { Able } from "./_able.ts";
import { capabilitiesIn } from "./_greeting.ts";
import { type Body, readBody } from "./_http_body.ts";
import { isListening, listened, type Listener, type Tell } from "./_http_listening.ts";
import { Sessions } from "./_http_sessions.ts";
import { Answers, type Rejection, rejection, withStatus } from "./_http_answer.ts";

/** The options of `serveHttp`. */
export interface HttpOptions {
  readonly host: string;
  /** The port; 0 takes a free one. */
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  /** What requests may name as their host and origin, beside names of this machine. */
  readonly names: Names;
  /** Returns whether a request may pass with this value of the header `Authorization`. */
  readonly mayPass: (authorization: string) => boolean;
  readonly connections: number;
  /** The most bytes of one request. */
  readonly inputBytes: number;
  /** How many bytes of an answer may wait for its client. */
  readonly queuedBytes: number;
  /** How long a client may read nothing before its connection is closed, in milliseconds. */
  readonly unreadMs: number;
  /** Opens what a stream listens on. */
  readonly listen: (tell: Tell) => Listener;
  /** Returns whether there is a task with this id. */
  readonly isTask: (id: string) => boolean;
  /** Is called with the capabilities of all clients together, when these change. */
  readonly onAble: (capabilities: JsonObject) => void;
  /** Returns why nothing can be called; undefined if everything is ready. */
  readonly problem: () => string | undefined;
  /** Is called with each refused request: its status and why. */
  readonly onRefused: (status: number, why: string) => void;
  readonly onError: (error: Error) => void;
}

/** The door for clients over HTTP. Disposing it breaks all connections. */
export interface HttpDoor extends Listens {
  /** The URL that clients configure. */
  readonly url: string;
  /** Tells the clients of the newest revision which listen for it what has changed. */
  readonly notify: ServerNotifier;
}

const PATH = "/mcp";
const METHODS = ["GET", "POST", "DELETE"];

/** Serves clients until it is disposed. Every server comes from the factory. */
export async function serveHttp(
  factory: McpServerFactory,
  options: HttpOptions,
): Promise<HttpDoor> {
  const { onError, inputBytes } = options;
  const modern = createMcpHandler(factory, {
    legacy: "reject",
    onerror: onError,
    maxRequestBodySize: inputBytes,
    maxSubscriptions: options.connections,
  });
  const sessions = new Sessions(factory, { ...options, most: options.connections });
  const together = new Able(options.onAble);
  const door = new Door(options, async (request, body) => {
    const able = isObject(body) ? capabilitiesIn(body as unknown as JSONRPCMessage) : undefined;
    if (able !== undefined) together.take(able);
    if (await isLegacyRequest(request, body)) return await sessions.answer(request, body);
    const response = await modern.fetch(request, { parsedBody: body });
    return isListening(body)
      ? listened(response, { ...options, message: body })
      : await withStatus(response);
  });
  const listener = await listen({
    ...options,
    what: "MCP",
    answer: (request, response) => void door.answer(request, response).catch(onError),
  });
  return {
    ...listener,
    url: `${listener.origin}${PATH}`,
    notify: modern.notify,
    drain: async (ms) => {
      sessions.hush();
      await listener.drain(ms);
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([modern.close(), sessions[Symbol.asyncDispose]()]);
      await listener[Symbol.asyncDispose]();
    },
  };
}

type Handle = (request: Request, body: unknown) => Promise<Response>;

/** Decides which requests reach the handlers, and carries their answers. */
class Door {
  readonly #options: HttpOptions;
  readonly #handle: Handle;
  readonly #answers: Answers;

  constructor(options: HttpOptions, handle: Handle) {
    this.#answers = new Answers(options);
    this.#options = options;
    this.#handle = handle;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const made = this.#refused(request) ?? await this.#made(request, gone.signal);
    await this.#answers.send(response, made);
  }

  /** Returns the refusal of a request whose body is not read. */
  #refused(request: IncomingMessage): Response | undefined {
    const { method = "", headers: { authorization = "" } } = request;
    const path = pathOf(request);
    const sender = refusedSender(request, this.#options.names);
    if (sender !== undefined) return this.#refuse(sender, "it names another host or origin");
    if (path === "/health") return Response.json({ status: "ok" });
    if (path === "/ready") {
      const problem = this.#options.problem();
      return Response.json({ status: problem === undefined ? "ready" : problem }, {
        status: problem === undefined ? 200 : 503,
      });
    }
    if (path !== PATH) return this.#refuse(404, `MCP is at ${PATH}`);
    if (method === "OPTIONS" || !METHODS.includes(method)) {
      return this.#refuse(405, "it is none of GET, POST and DELETE", {
        headers: { allow: METHODS.join(", ") },
      });
    }
    if (!this.#options.mayPass(authorization)) {
      return this.#refuse(401, "its token is missing or wrong", {
        headers: { "www-authenticate": "Bearer" },
      });
    }
    return undefined;
  }

  async #made(request: IncomingMessage, signal: AbortSignal): Promise<Response> {
    const { method = "" } = request;
    const read: Body = method === "POST" ? await readBody(request, this.#options) : {};
    if (read.refused !== undefined) {
      const { status, why, code } = read.refused;
      return this.#refuse(status, why, { code });
    }
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) {
      if (typeof value === "string") headers.set(name, value);
    }
    // The token is nobody's business after this.
    headers.delete("authorization");
    const web = new Request(`http://localhost${PATH}`, { method, headers, signal });
    return await this.#handle(web, read.json);
  }

  #refuse(status: number, why: string, more: Omit<Rejection, "why"> = {}): Response {
    this.#options.onRefused(status, why);
    return rejection(status, { why, ...more });
  }
}

function pathOf({ url = "" }: IncomingMessage): string {
  return url.replace(/^[a-z]+:\/\/[^/?#]*/i, "").replace(/[?#].*/s, "");
}
