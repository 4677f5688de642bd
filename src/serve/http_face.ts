/**
 * The MCP messages of one party over HTTP, in every revision.
 *
 * @module
 */

import {
  createMcpHandler,
  isLegacyRequest,
  type JSONRPCMessage,
  type McpHttpHandler,
  type ServerNotifier,
} from "@modelcontextprotocol/server";
import { isObject, type JsonObject } from "../core/json.ts";
import type { Face } from "../gateway/connection.ts";
import { Able } from "./_able.ts";
import { capabilitiesIn } from "./_greeting.ts";
import { type TextAnswer, withStatus } from "./_http_answer.ts";
import type { Coming } from "./_http_body.ts";
import { HttpDirect, type HttpDirectOptions, type PostRequest } from "./_http_direct.ts";
import { isListening, listened, type Listener, type Tell, withNothing } from "./_http_listening.ts";
import { Sessions } from "./_http_sessions.ts";

/** What answers the messages of one party. */
export interface FaceOptions extends Face {
  /** Returns what PML says of itself. */
  readonly hello: HttpDirectOptions["hello"];
  /** Opens what a stream listens on. */
  readonly listen: (tell: Tell) => Listener;
  /** Returns whether there is a task with this id. */
  readonly isTask: (id: string) => boolean;
  /** Is called with the capabilities of all clients together, when these change. */
  readonly onAble: (capabilities: JsonObject) => void;
  /** Whom it answers: the hash of the token of an identity; null for the person. */
  readonly identity: string | null;
  /** How the ids of sessions begin. */
  readonly prefix: string;
}

/** The limits of a face. */
export interface FaceLimits {
  readonly connections: number;
  readonly inputBytes: number;
  readonly queuedBytes: number;
  readonly onError: (error: Error) => void;
}

/** Answers messages. */
export class HttpFace implements AsyncDisposable {
  /** Whom it answers: the hash of the token of an identity; null for the person. */
  readonly identity: string | null;
  /** What has come of its requests that are not whole. */
  readonly coming: Coming = { bodies: 0, bytes: 0 };
  /** How many of its requests have no whole answer, and so keep their connections. */
  open = 0;
  /** Aborts when it ends, and answers nothing more. */
  readonly ending = new AbortController();
  readonly #options: FaceOptions & FaceLimits;
  readonly #modern: McpHttpHandler;
  readonly #sessions: Sessions;
  readonly #direct: HttpDirect;
  readonly #together: Able;

  /** Takes what answers, and the limits. */
  constructor(options: FaceOptions & FaceLimits) {
    const { factory, connections, inputBytes, onError } = this.#options = options;
    this.identity = options.identity;
    this.#modern = createMcpHandler(factory, {
      legacy: "reject",
      onerror: onError,
      maxRequestBodySize: inputBytes,
      maxSubscriptions: connections,
    });
    this.#sessions = new Sessions({ ...options, most: connections });
    this.#direct = new HttpDirect({ ...options, declares: (able) => this.declares(able) });
    this.#together = new Able(options.onAble);
  }

  /** Tells the clients of the newest revision which listen for it what has changed. */
  get notify(): ServerNotifier {
    return this.#modern.notify;
  }

  /** Takes what a client declares that is served otherwise. */
  declares(able: JsonObject): void {
    this.#together.take(able);
  }

  /** Answers a POST that needs no SDK and no other process; undefined, with nothing done, for others. */
  direct(request: PostRequest, body: unknown): Promise<Response | TextAnswer> | undefined {
    return this.#direct.answer(request, body) ?? this.#sessions.direct(request, body);
  }

  /** Answers a request. Its body was parsed. */
  async answer(request: Request, body: unknown): Promise<Response> {
    const able = isObject(body) ? capabilitiesIn(body as unknown as JSONRPCMessage) : undefined;
    if (able !== undefined) this.declares(able);
    if (await isLegacyRequest(request, body)) {
      return await this.#sessions.answer(request, body);
    }
    if (!isListening(body)) {
      return await withStatus(await this.#modern.fetch(request, { parsedBody: body }));
    }
    const response = await this.#modern.fetch(request, { parsedBody: withNothing(body) });
    return listened(response, { ...this.#options, message: body });
  }

  /** Ends the streams on which nothing is answered. */
  hush(): void {
    this.#sessions.hush();
  }

  /** Ends all sessions and streams. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.ending.abort();
    this.#direct[Symbol.dispose]();
    await Promise.all([this.#modern.close(), this.#sessions[Symbol.asyncDispose]()]);
  }
}
