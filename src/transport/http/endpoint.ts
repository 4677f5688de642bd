/**
 * The MCP endpoint of one identity over HTTP, for all revisions.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../../core/json.ts";
import type { Notification } from "../../protocol/subscriptions.ts";
import { SharedCapabilities } from "./_shared_capabilities.ts";
import { capabilitiesIn } from "../../protocol/initialize.ts";
import type { TextAnswer } from "./_answer.ts";
import type { IncompleteBodies } from "./body.ts";
import { HttpStateless } from "./_stateless.ts";
import type { ListenHost, SendNotification } from "./_listen_streams.ts";
import type { SessionHost } from "./_session.ts";
import { type HttpRequest, selectRoute } from "./_route.ts";
import { Sessions } from "./_sessions.ts";

export type { SendNotification };

/** The PML process that answers the messages of an endpoint. */
export interface EndpointHost extends ListenHost, SessionHost {
  /** Receives the combined capabilities of all clients when they change. */
  onDeclared(capabilities: JsonObject): void;
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

/** Answers the HTTP requests of one identity. */
export class HttpEndpoint implements AsyncDisposable {
  /** The hash of the identity's token; null for the user. */
  readonly identity: string | null;
  /** The incomplete bodies of its requests. */
  readonly incomplete: IncompleteBodies = { bodies: 0, bytes: 0 };
  /** The number of requests whose answers are incomplete. Each of them occupies a connection. */
  openCount = 0;
  /** Aborts when the endpoint ends. */
  readonly ending = new AbortController();
  readonly #sessions: Sessions;
  readonly #stateless: HttpStateless;
  readonly #capabilities: SharedCapabilities;

  /** Creates an endpoint. */
  constructor(host: EndpointHost, limits: EndpointLimits, { identity, prefix }: EndpointOwner) {
    this.identity = identity;
    const shared = this.#capabilities = new SharedCapabilities((capabilities) =>
      host.onDeclared(capabilities)
    );
    this.#sessions = new Sessions(host, limits, { prefix, capabilities: shared });
    this.#stateless = new HttpStateless(host, limits);
  }

  /** Sends a notification to the clients of the stateless revision that listen for it. */
  notify(notification: Notification): void {
    this.#stateless.notify(notification);
  }

  /**
   * Adds the capabilities of a client that another part of PML serves. They count until the returned
   * object is disposed.
   */
  holdCapabilities(capabilities: JsonObject): Disposable {
    return this.#capabilities.hold(capabilities);
  }

  /** Answers a request. */
  answer(request: HttpRequest): Promise<Response | TextAnswer> | Response | TextAnswer {
    const capabilities = capabilitiesIn(objectOf(request.body));
    if (capabilities !== undefined) this.#capabilities.addForRequest(capabilities);
    const route = selectRoute(request);
    return route.kind === "session"
      ? this.#sessions.answer(request)
      : this.#stateless.answer(request, route);
  }

  /** Closes the streams that carry no answers. */
  closeStandalone(): void {
    this.#sessions.closeStandalone();
  }

  /** Ends all sessions and streams. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.ending.abort();
    this.#stateless[Symbol.dispose]();
    await this.#sessions[Symbol.asyncDispose]();
  }
}
