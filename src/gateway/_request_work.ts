/**
 * The work on one request of a client, and the client as calls of this work see it.
 *
 * @module
 */

import type { Answer, CallClient } from "../core/call.ts";
import type { Cancellation } from "../core/cancellation.ts";
import { numberOf } from "../core/exact_number.ts";
import { isObject, type JsonObject, objectOf } from "../core/json.ts";
import { isAtLeast } from "../core/levels.ts";
import { type ProgressListener, withRisingValues } from "../core/progress.ts";
import type { ClientRequest } from "./_exchange.ts";
import type { AskClient } from "./_runs.ts";
import type { RequestContext } from "../protocol/connection.ts";

const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

/** How a client is asked. Each member is created when it is first used. */
export interface ClientAsking {
  /** Passes a question of a server or of PML to the client. */
  questions(request: ClientRequest, ask: AskClient): Required<
    Pick<CallClient, "onAsk" | "onQuestion">
  >;
  /** Returns the function that opens a page; undefined if the client cannot. */
  opening(request: ClientRequest, ask: AskClient): CallClient["onOpen"];
}

/** What cancels the work on a request, and how its client is reached. */
export interface ClientReach {
  readonly cancellation: Cancellation;
  readonly ask: AskClient;
  /** Returns the request that waits now: a client may send it again. */
  readonly latest: () => RequestContext | undefined;
}

/**
 * The work on a request. It is the client of the calls that it makes: few of them need more than one
 * of these members, so each is created when it is first read.
 */
export class RequestWork implements CallClient {
  readonly cancellation: Cancellation;
  /** The answer that the request brought, or that was given since. */
  answer: Answer | undefined;
  /** The request as it came first. */
  readonly of: ClientRequest;
  readonly #reach: ClientReach;
  readonly #asking: ClientAsking;
  #questions: ReturnType<ClientAsking["questions"]> | undefined;
  #onProgress: ProgressListener | undefined;

  /** Begins the work. */
  constructor(request: ClientRequest, reach: ClientReach, asking: ClientAsking) {
    this.cancellation = reach.cancellation;
    this.of = request;
    this.#reach = reach;
    this.#asking = asking;
  }

  /** The client of the calls. */
  get client(): CallClient {
    return this;
  }

  get request(): string {
    return this.of.context.idText;
  }

  get able(): JsonObject {
    return this.of.capabilities;
  }

  get isOlder(): boolean {
    return !this.of.client.isModern;
  }

  get sampling(): JsonObject | undefined {
    const { sampling } = this.of.capabilities;
    return isObject(sampling) ? objectOf(sampling) : undefined;
  }

  get toolset(): CallClient["toolset"] {
    return this.of.toolset;
  }

  get onAsk(): NonNullable<CallClient["onAsk"]> {
    return this.#asks.onAsk;
  }

  get onQuestion(): NonNullable<CallClient["onQuestion"]> {
    return this.#asks.onQuestion;
  }

  get onOpen(): CallClient["onOpen"] {
    return this.#asking.opening(this.of, this.#reach.ask);
  }

  /** Undefined if the client sent no progress token. */
  get onProgress(): ProgressListener | undefined {
    if (!isToken(this.of.context.meta?.progressToken)) return undefined;
    return this.#onProgress ??= withRisingValues((progress) => {
      // A request that comes again may have another token.
      const { progressToken } = this.#reach.latest()?.meta ?? {};
      if (isToken(progressToken)) {
        this.#notify("notifications/progress", { ...progress, progressToken });
      }
    });
  }

  /** Undefined if the request names no log level. */
  get onMessage(): CallClient["onMessage"] {
    const level: unknown = this.of.context.envelope?.[LOG_LEVEL];
    if (typeof level !== "string") return undefined;
    return (message) => {
      if (isAtLeast(message.level, level)) this.#notify("notifications/message", message);
    };
  }

  get #asks(): ReturnType<ClientAsking["questions"]> {
    return this.#questions ??= this.#asking.questions(this.of, this.#reach.ask);
  }

  #notify(method: string, params: object): void {
    // A client that has disconnected, or that asks its user now, gets nothing.
    this.#reach.latest()?.notify({ method, params }).catch(() => {});
  }
}

function isToken(value: unknown): boolean {
  return typeof value === "string" || numberOf(value) !== undefined;
}
