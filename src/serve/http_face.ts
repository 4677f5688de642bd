/**
 * The MCP messages of one party over HTTP, in every revision.
 *
 * @module
 */

import type { IncomingHttpHeaders } from "node:http";
import { type JsonObject, objectOf } from "../core/json.ts";
import type { Face } from "../protocol/connection.ts";
import { JSON_TYPE } from "../io/event_stream.ts";
import type { Notification } from "../protocol/subscriptions.ts";
import { Able } from "./_able.ts";
import { capabilitiesIn } from "../protocol/initialize.ts";
import type { TextAnswer } from "./_http_answer.ts";
import type { Coming } from "./_http_body.ts";
import { HttpDirect, type HttpDirectOptions, type StatelessRequest } from "./_http_direct.ts";
import type { Listener, Tell } from "./_http_listening.ts";
import { type Route, routeOf } from "./_http_route.ts";
import { SESSION_HEADER } from "./_http_session.ts";
import { type SessionRequest, Sessions } from "./_http_sessions.ts";

/** A POST request. */
export interface PostRequest {
  readonly headers: IncomingHttpHeaders;
  /** Aborted when its client has gone. */
  readonly signal: AbortSignal;
}

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
  readonly #sessions: Sessions;
  readonly #direct: HttpDirect;
  readonly #together: Able;

  /** Takes what answers, and the limits. */
  constructor(options: FaceOptions & FaceLimits) {
    this.identity = options.identity;
    this.#sessions = new Sessions({ ...options, most: options.connections });
    this.#direct = new HttpDirect(options);
    this.#together = new Able(options.onAble);
  }

  /** Sends a notification to the clients of the newest revision that listen for it. */
  notify(notification: Notification): void {
    this.#direct.notify(notification);
  }

  /** Takes what a client declares that is served otherwise. */
  declares(able: JsonObject): void {
    this.#together.take(able);
  }

  /** Answers a POST that needs no other process; undefined, with nothing done, for others. */
  direct(
    request: PostRequest,
    body: unknown,
  ): Promise<Response | TextAnswer> | Response | TextAnswer | undefined {
    if (body === undefined || isElsewhere(body)) return undefined;
    const header = (name: string) => request.headers[name]?.toString();
    const session = header(SESSION_HEADER);
    const route = routeOf({ body, header });
    if (route.kind === "session" && session !== undefined && !this.#sessions.has(session)) {
      return undefined;
    }
    return this.#answer(route, { method: "POST", header, body, signal: request.signal });
  }

  /** Answers a request. Its body was parsed. */
  async answer(request: Request, body: unknown): Promise<Response> {
    const header = (name: string) => request.headers.get(name) ?? undefined;
    const route = routeOf({ body, header });
    const { method, signal } = request;
    const answer = await this.#answer(route, { method, header, body, signal });
    if (answer instanceof Response) return answer;
    return new Response(answer.text, {
      status: answer.status,
      headers: { "content-type": JSON_TYPE },
    });
  }

  #answer(
    route: Route,
    request: SessionRequest & StatelessRequest,
  ): Promise<Response | TextAnswer> | Response | TextAnswer {
    this.#declaredIn(request.body);
    return route.kind === "session"
      ? this.#sessions.answer(request)
      : this.#direct.answer(request, route);
  }

  #declaredIn(body: unknown): void {
    const able = capabilitiesIn(objectOf(body));
    if (able !== undefined) this.declares(able);
  }

  /** Ends the streams on which nothing is answered. */
  hush(): void {
    this.#sessions.hush();
  }

  /** Ends all sessions and streams. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.ending.abort();
    this.#direct[Symbol.dispose]();
    await this.#sessions[Symbol.asyncDispose]();
  }
}

/** The parameters that name work which another process may have begun. */
const ELSEWHERE = ["requestState", "inputResponses", "taskId"];

function isElsewhere(body: unknown): boolean {
  const params = objectOf(objectOf(body).params);
  return ELSEWHERE.some((name) => name in params);
}
