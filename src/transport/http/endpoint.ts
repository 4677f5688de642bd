/**
 * The MCP messages of one party over HTTP, in every revision.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../../core/json.ts";
import type { Notification } from "../../protocol/subscriptions.ts";
import { Able } from "./_able.ts";
import { capabilitiesIn } from "../../protocol/initialize.ts";
import type { TextAnswer } from "./_answer.ts";
import type { Coming } from "./_body.ts";
import { HttpStateless } from "./_stateless.ts";
import type { ListenHost, Tell } from "./_listen_streams.ts";
import type { SessionHost } from "./_session.ts";
import { type HttpRequest, routeOf } from "./_route.ts";
import { Sessions } from "./_sessions.ts";

export type { Tell };

/** The PML that answers the messages of one party. */
export interface FaceHost extends ListenHost, SessionHost {
  /** Takes the capabilities of all clients together, when these change. */
  declared(capabilities: JsonObject): void;
}

/** The party whose messages are answered. */
export interface FaceParty {
  /** The hash of the token of an identity; null for the person. */
  readonly identity: string | null;
  /** How the ids of sessions begin. */
  readonly prefix: string;
}

/** The limits of a face. */
export interface FaceLimits {
  readonly connections: number;
  readonly inputBytes: number;
  readonly queuedBytes: number;
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
  readonly #stateless: HttpStateless;
  readonly #together: Able;

  /** Takes what answers, and the limits. */
  constructor(host: FaceHost, limits: FaceLimits, { identity, prefix }: FaceParty) {
    this.identity = identity;
    this.#sessions = new Sessions(host, limits, prefix);
    this.#stateless = new HttpStateless(host, limits);
    this.#together = new Able((capabilities) => host.declared(capabilities));
  }

  /** Sends a notification to the clients of the newest revision that listen for it. */
  notify(notification: Notification): void {
    this.#stateless.notify(notification);
  }

  /** Takes what a client declares that is served otherwise. */
  declares(able: JsonObject): void {
    this.#together.take(able);
  }

  /** Answers a request. */
  answer(request: HttpRequest): Promise<Response | TextAnswer> | Response | TextAnswer {
    const able = capabilitiesIn(objectOf(request.body));
    if (able !== undefined) this.declares(able);
    const route = routeOf(request);
    return route.kind === "session"
      ? this.#sessions.answer(request)
      : this.#stateless.answer(request, route);
  }

  /** Ends the streams on which nothing is answered. */
  hush(): void {
    this.#sessions.hush();
  }

  /** Ends all sessions and streams. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.ending.abort();
    this.#stateless[Symbol.dispose]();
    await this.#sessions[Symbol.asyncDispose]();
  }
}
