/**
 * The MCP endpoint of one identity over HTTP, for all revisions.
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
import type { ListenHost, SendNotification } from "./_listen_streams.ts";
import type { SessionHost } from "./_session.ts";
import { type HttpRequest, routeOf } from "./_route.ts";
import { Sessions } from "./_sessions.ts";

export type { SendNotification };

/** The PML process that answers the messages of an endpoint. */
export interface EndpointHost extends ListenHost, SessionHost {
  /** Receives the combined capabilities of all clients when they change. */
  declared(capabilities: JsonObject): void;
}

/** The owner of an endpoint. */
export interface EndpointOwner {
  /** The hash of an identity's token; null for the user. */
  readonly identity: string | null;
  /** The prefix of session ids. */
  readonly prefix: string;
}

/** The limits of an endpoint. */
export interface EndpointLimits {
  readonly connections: number;
  readonly inputBytes: number;
  readonly queuedBytes: number;
}

/** Answers messages. */
export class HttpEndpoint implements AsyncDisposable {
  /** The hash of the identity's token; null for the user. */
  readonly identity: string | null;
  /** The incomplete bodies of its requests. */
  readonly coming: Coming = { bodies: 0, bytes: 0 };
  /** The number of its requests whose answers are incomplete, which occupy connections. */
  open = 0;
  /** Aborts when the endpoint ends. */
  readonly ending = new AbortController();
  readonly #sessions: Sessions;
  readonly #stateless: HttpStateless;
  readonly #together: Able;

  /** Creates an endpoint. */
  constructor(host: EndpointHost, limits: EndpointLimits, { identity, prefix }: EndpointOwner) {
    this.identity = identity;
    const able = this.#together = new Able((capabilities) => host.declared(capabilities));
    this.#sessions = new Sessions(host, limits, { prefix, able });
    this.#stateless = new HttpStateless(host, limits);
  }

  /** Sends a notification to the clients of the stateless revision that listen for it. */
  notify(notification: Notification): void {
    this.#stateless.notify(notification);
  }

  /** Adds the capabilities of a client that is served elsewhere. They count until it is disposed. */
  holdCapabilities(able: JsonObject): Disposable {
    return this.#together.hold(able);
  }

  /** Answers a request. */
  answer(request: HttpRequest): Promise<Response | TextAnswer> | Response | TextAnswer {
    const able = capabilitiesIn(objectOf(request.body));
    if (able !== undefined) this.#together.take(able);
    const route = routeOf(request);
    return route.kind === "session"
      ? this.#sessions.answer(request)
      : this.#stateless.answer(request, route);
  }

  /** Closes the streams that carry no answers. */
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
