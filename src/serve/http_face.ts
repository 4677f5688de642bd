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
  type McpServerFactory,
  PROTOCOL_VERSION_META_KEY,
  type ServerNotifier,
} from "@modelcontextprotocol/server";
import { isObject, type JsonObject, objectOf } from "../core/json.ts";
import { Able } from "./_able.ts";
import { capabilitiesIn } from "./_greeting.ts";
import { withStatus } from "./_http_answer.ts";
import { isListening, listened, type Listener, type Tell, withNothing } from "./_http_listening.ts";
import { Sessions } from "./_http_sessions.ts";

/** What answers the messages of one party. */
export interface FaceOptions {
  /** Makes the server of a session, or of a request. */
  readonly factory: McpServerFactory;
  /** Opens what a stream listens on. */
  readonly listen: (tell: Tell) => Listener;
  /** Returns whether there is a task with this id. */
  readonly isTask: (id: string) => boolean;
  /** Is called with the capabilities of all clients together, when these change. */
  readonly onAble: (capabilities: JsonObject) => void;
  /** The identity that it answers; null for the person. */
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

/**
 * Returns whether a request names its revision itself, as those of the newest do. The SDK finds the
 * same out in more time, and also for all other requests.
 */
function isClaimed(body: unknown): boolean {
  return isObject(body) && PROTOCOL_VERSION_META_KEY in objectOf(objectOf(body.params)._meta);
}

/** Answers messages. */
export class HttpFace implements AsyncDisposable {
  /** The identity that it answers; null for the person. */
  readonly identity: string | null;
  readonly #options: FaceOptions & FaceLimits;
  readonly #modern: McpHttpHandler;
  readonly #sessions: Sessions;
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
    this.#sessions = new Sessions(factory, { ...options, most: connections });
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

  /** Answers a request. Its body was parsed. */
  async answer(request: Request, body: unknown): Promise<Response> {
    const able = isObject(body) ? capabilitiesIn(body as unknown as JSONRPCMessage) : undefined;
    if (able !== undefined) this.declares(able);
    if (!isClaimed(body) && await isLegacyRequest(request, body)) {
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
    await Promise.all([this.#modern.close(), this.#sessions[Symbol.asyncDispose]()]);
  }
}
