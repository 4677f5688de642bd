/**
 * A request of a client, and the functions with which the calls of the request reach the client.
 *
 * @module
 */

import type {
  ApprovalAnswer,
  Call,
  CallClient,
  ProgressReport,
  ServerRequest,
} from "../../protocol/call.ts";
import type { Cancellation } from "../../core/cancellation.ts";
import { numberOf } from "../../core/exact_number.ts";
import { isObject, type JsonObject, objectOf, sortedJsonText } from "../../core/json.ts";
import { isAtLeast } from "../../protocol/levels.ts";
import { type ProgressListener, withRisingValues } from "../../protocol/progress.ts";
import type { RequestContext } from "../../protocol/connection.ts";
import type { Toolset } from "../../protocol/toolset.ts";
import { META } from "../../protocol/envelope.ts";
import type { Client } from "../_clients.ts";

/** A request of a client. */
export interface ClientRequest {
  readonly client: Client;
  readonly context: RequestContext;
  readonly params: JsonObject;
  /** The capabilities that the client declared with the request, or with its `initialize`. */
  readonly capabilities: JsonObject;
  /** The name that the client states; empty if it states none. */
  readonly clientName: string;
  /** Returns the tools that the client may use now; undefined if it may use all. */
  readonly toolset: () => Toolset | undefined;
}

/** The values that all calls of one request share. */
export type RequestScope = Pick<Call, "cancellation" | "client"> & {
  /** The answer of the user to an approval request, if the client sent one. */
  readonly answer: ApprovalAnswer | undefined;
};

/**
 * Sends a request for input of the user or the model to a client, and returns the result. Rejects
 * with the reason of the signal if the signal aborts.
 */
export type RequestInput = (
  request: Pick<ServerRequest, "key" | "method" | "params" | "members" | "signal" | "onProgress">,
) => Promise<JsonObject>;

/**
 * The functions with which servers (`onServerRequest`) and PML (`onQuestion`) get input from a
 * client.
 */
export type ClientInput = Required<Pick<CallClient, "onServerRequest" | "onQuestion">>;

/** Returns a text that is equal for a request and its repetition, and different for all others. */
export function identityOf({ context, params: { _meta: _, ...rest } }: ClientRequest): string {
  return sortedJsonText([context.method, rest]);
}

/**
 * A request that may end while its calls wait for input. PML then answers the request of a 2026-07-28
 * client with "input required". The client collects the input, and sends the request again: each of
 * these requests is a "form" of the first one. `PendingInput` implements this type.
 */
export interface PausableRequest {
  /** Cancels the calls. */
  readonly cancellation: Cancellation;
  /** The latest form of the request; undefined while its client collects input. */
  readonly current: RequestContext | undefined;
  /** Requests input with the result of the request. */
  requestInput(...request: Parameters<RequestInput>): Promise<JsonObject>;
}

/** Lets calls get input from clients. */
export interface InputSource {
  /** Returns the functions by which calls get input from a client. */
  inputFrom(client: {
    readonly requestInput: RequestInput;
    readonly capabilities: JsonObject;
    /** The name and the version of the client. */
    readonly info?: JsonObject | undefined;
  }): ClientInput;
  /** Returns the function that asks a client to open a page; undefined if it cannot. */
  pageOpener(
    request: Pick<ClientRequest, "capabilities" | "client">,
    requestInput: RequestInput,
  ): CallClient["onOpen"];
  /**
   * Returns the unknown members (next to `method` and `params`) of a server's message if the client
   * takes them. Otherwise reports them, and returns undefined.
   */
  membersFor(
    context: Pick<RequestContext, "takesMembers"> | undefined,
    message: { readonly method: string; readonly members?: JsonObject | undefined },
  ): JsonObject | undefined;
  /** Returns how long a request to a client waits for its answer, in milliseconds. */
  answerMs(): number;
}

/**
 * The client of a request. Each getter creates its value when it is first read, because few calls
 * need more than one of the values.
 */
export class RequestClient implements CallClient {
  /** The first form of the request. */
  readonly clientRequest: ClientRequest;
  readonly #interaction: InputSource;
  readonly #pending: PausableRequest | undefined;
  #input: ClientInput | undefined;
  #onProgress: ProgressListener | undefined;

  /**
   * Takes the request, and the interaction that asks for input. `pending` requests input with the
   * result of the request. Without `pending`, PML sends requests to the client while the client's own
   * request waits.
   */
  constructor(request: ClientRequest, interaction: InputSource, pending?: PausableRequest) {
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

  get trace(): CallClient["trace"] {
    return this.clientRequest.context.trace;
  }

  get connection(): AbortSignal | undefined {
    return this.clientRequest.client.connection?.signal;
  }

  get capabilities(): JsonObject {
    return this.clientRequest.capabilities;
  }

  get info(): JsonObject | undefined {
    return this.clientRequest.client.info;
  }

  /** Whether the client uses a revision with sessions, before 2026-07-28. */
  get usesOlderRevision(): boolean {
    return !this.clientRequest.client.isStateless;
  }

  get sampling(): JsonObject | undefined {
    const { sampling } = this.clientRequest.capabilities;
    return isObject(sampling) ? objectOf(sampling) : undefined;
  }

  get toolset(): CallClient["toolset"] {
    return this.clientRequest.toolset;
  }

  get onServerRequest(): ClientInput["onServerRequest"] {
    return this.#clientInput.onServerRequest;
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
    // Most calls report no progress, so the first report creates the listener with rising values.
    return (progress) => {
      this.#onProgress ??= withRisingValues((risen) => this.#report(risen));
      this.#onProgress(progress);
    };
  }

  /** Sends a report. `members` are the unknown members of the server's notification. */
  #report({ members, ...progress }: Omit<ProgressReport, "own">): void {
    // A repeated request may have another token.
    const { progressToken } = this.#current?.meta ?? {};
    if (!isToken(progressToken)) return;
    const params = { ...members?.params, ...progress, progressToken };
    this.#notify("notifications/progress", params, members?.message);
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
    const accepted = this.#interaction.membersFor(this.#current, {
      method: context.method,
      members,
    });
    if (accepted !== undefined) this.#current?.answerWith(accepted);
  }

  get #clientInput(): ClientInput {
    return this.#input ??= this.#interaction.inputFrom({
      requestInput: this.#requestInput,
      capabilities: this.clientRequest.capabilities,
      info: this.info,
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

  /** Sends a notification. Returns false if the client has disconnected, or collects input. */
  #notify(method: string, params: object, unknownMembers?: JsonObject): boolean {
    const current = this.#current;
    if (current === undefined) return false;
    const members = unknownMembers &&
      this.#interaction.membersFor(current, { method, members: unknownMembers });
    current.notify(members === undefined ? { method, params } : { method, params, members })
      .catch(() => {});
    return true;
  }
}

function isToken(value: unknown): boolean {
  return typeof value === "string" || numberOf(value) !== undefined;
}
