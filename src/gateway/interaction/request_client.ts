/**
 * The client of a request, as the calls made for the request see it.
 *
 * @module
 */

import type { CallClient } from "../../protocol/call.ts";
import type { Cancellation } from "../../core/cancellation.ts";
import { numberOf } from "../../core/exact_number.ts";
import { isObject, type JsonObject, objectOf } from "../../core/json.ts";
import { isAtLeast } from "../../protocol/levels.ts";
import { type ProgressListener, withRisingValues } from "../../protocol/progress.ts";
import type { RequestContext } from "../../protocol/connection.ts";
import { META } from "../../protocol/envelope.ts";
import type { ClientInput, ClientRequest, RequestInput } from "./client_request.ts";
import type { PendingInput } from "./pending_input.ts";

/** Lets calls get input from clients. */
export interface InputSource {
  /** Returns the functions by which calls get input from a client. */
  inputFrom(client: {
    readonly requestInput: RequestInput;
    readonly capabilities: JsonObject;
  }): ClientInput;
  /** Returns the function that asks a client to open a page; undefined if it cannot. */
  pageOpener(
    request: Pick<ClientRequest, "capabilities" | "client">,
    requestInput: RequestInput,
  ): CallClient["onOpen"];
  /** Returns members of a server's message if the client takes them, and reports them otherwise. */
  membersFor(
    context: Pick<RequestContext, "takesMembers"> | undefined,
    message: { readonly method: string; readonly members?: JsonObject | undefined },
  ): JsonObject | undefined;
  /** Returns how long a request to a client waits for its answer, in milliseconds. */
  answerMs(): number;
}

/**
 * The client of a request. Few calls need more than one of the members, so each is created when it
 * is first read.
 */
export class RequestClient implements CallClient {
  /** The request as it came first. */
  readonly clientRequest: ClientRequest;
  readonly #interaction: InputSource;
  readonly #pending: PendingInput | undefined;
  #input: ClientInput | undefined;
  #onProgress: ProgressListener | undefined;

  /**
   * Takes the request, and the interaction that it belongs to. `pending` requests input with results;
   * without it, the client gets requests while its own request waits.
   */
  constructor(request: ClientRequest, interaction: InputSource, pending?: PendingInput) {
    this.clientRequest = request;
    this.#interaction = interaction;
    this.#pending = pending;
  }

  /** Cancels the calls of the request. */
  get cancellation(): Cancellation {
    return (this.#pending ?? this.clientRequest.context).cancellation;
  }

  get requestId(): string {
    return this.clientRequest.context.idText;
  }

  get connection(): AbortSignal | undefined {
    return this.clientRequest.client.connection?.signal;
  }

  get able(): JsonObject {
    return this.clientRequest.capabilities;
  }

  get info(): JsonObject | undefined {
    return this.clientRequest.client.info;
  }

  get isOlder(): boolean {
    return !this.clientRequest.client.isStateless;
  }

  get sampling(): JsonObject | undefined {
    const { sampling } = this.clientRequest.capabilities;
    return isObject(sampling) ? objectOf(sampling) : undefined;
  }

  get toolset(): CallClient["toolset"] {
    return this.clientRequest.toolset;
  }

  get onAsk(): ClientInput["onAsk"] {
    return this.#clientInput.onAsk;
  }

  get onQuestion(): ClientInput["onQuestion"] {
    return this.#clientInput.onQuestion;
  }

  get onOpen(): CallClient["onOpen"] {
    return this.#interaction.pageOpener(this.clientRequest, this.#requestInput);
  }

  /** Undefined if the client sent no progress token. */
  get onProgress(): ProgressListener | undefined {
    if (!isToken(this.clientRequest.context.meta?.progressToken)) return undefined;
    return this.#onProgress ??= withRisingValues(({ members, ...progress }) => {
      // A repeated request may have another token.
      const { progressToken } = this.#current?.meta ?? {};
      if (isToken(progressToken)) {
        const params = { ...members?.params, ...progress, progressToken };
        this.#notify("notifications/progress", params, members?.message);
      }
    });
  }

  get onNotify(): NonNullable<CallClient["onNotify"]> {
    return ({ method, params, members }) => this.#notify(method, params, members);
  }

  /** Undefined if the request names no log level. */
  get onMessage(): CallClient["onMessage"] {
    const level: unknown = this.clientRequest.context.envelope?.[META.level];
    if (typeof level !== "string") return undefined;
    return (message, members) => {
      if (isAtLeast(message.level, level)) this.#notify("notifications/message", message, members);
    };
  }

  /** Adds the members next to the `result` of a server's answer, if the client takes them. */
  answerWith(members: JsonObject): void {
    const { context } = this.clientRequest;
    const own = this.#interaction.membersFor(this.#current, { method: context.method, members });
    if (own !== undefined) this.#current?.answerWith(own);
  }

  get #clientInput(): ClientInput {
    return this.#input ??= this.#interaction.inputFrom({
      requestInput: this.#requestInput,
      capabilities: this.clientRequest.capabilities,
    });
  }

  get #requestInput(): RequestInput {
    return (request) => {
      if (this.#pending !== undefined) {
        const members = this.#interaction.membersFor(this.#current, request);
        return this.#pending.requestInput({ ...request, members });
      }
      const { method, params, signal, onProgress } = request;
      const { context } = this.clientRequest;
      const members = this.#interaction.membersFor(context, request);
      const ms = this.#interaction.answerMs();
      return context.ask(method, params, { signal, ms, members, onProgress });
    };
  }

  /** The request that waits for the result; undefined while its client collects input. */
  get #current(): RequestContext | undefined {
    return this.#pending === undefined ? this.clientRequest.context : this.#pending.current;
  }

  /** Returns whether the client waits. One that has disconnected, or collects input, does not. */
  #notify(method: string, params: object, sent?: JsonObject): boolean {
    const current = this.#current;
    if (current === undefined) return false;
    const members = sent && this.#interaction.membersFor(current, { method, members: sent });
    current.notify(members === undefined ? { method, params } : { method, params, members })
      .catch(() => {});
    return true;
  }
}

function isToken(value: unknown): boolean {
  return typeof value === "string" || numberOf(value) !== undefined;
}
