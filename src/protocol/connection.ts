/**
 * The interfaces between transports and the gateway: connections of clients, and their requests.
 *
 * @module
 */

import type { CallClient } from "./call.ts";
import type { Cancellation } from "../core/cancellation.ts";
import type { Json, JsonObject } from "../core/json.ts";
import type { RequestSpan } from "./trace.ts";

/** PML's own description of itself. */
export interface Hello {
  readonly capabilities: JsonObject;
  readonly serverInfo: {
    readonly name: string;
    readonly title: string;
    readonly version: string;
  };
  readonly instructions: string;
}

/** A notification to a client. */
export interface SentNotification {
  readonly method: string;
  readonly params?: object;
  /** Members next to `method` and `params`, which the client gets if it accepts them. */
  readonly members?: JsonObject | undefined;
}

/** A connected client: the facts from its `initialize`, and the function that notifies it. */
export interface ClientPeer {
  /** Sends a notification. */
  notification(notification: SentNotification): Promise<void>;
  /** Returns whether the client takes members that JSON-RPC does not define. */
  takesMembers?(): boolean;
  /** Returns the capabilities of `initialize`. */
  getClientCapabilities(): object | undefined;
  /** Returns the name and the version of `initialize`. */
  getClientVersion(): object | undefined;
  /** Returns the revision that the connection speaks. */
  getNegotiatedProtocolVersion(): string | undefined;
  /** The id of the session over HTTP, if there is one. */
  readonly sessionId?: string | undefined;
  /** Whether the client exists for one request, and so gets only notifications of this request. */
  readonly isBrief?: boolean;
}

/**
 * A notification of a client whose method no revision defines, or one with members that PML does
 * not know.
 */
export interface UnknownNotification {
  readonly method: string;
  readonly params: JsonObject;
  /** The members next to `method` and `params` that JSON-RPC does not define. */
  readonly members: JsonObject | undefined;
  /** The reserved keys of its `_meta`, in the stateless revision. */
  readonly envelope: JsonObject | undefined;
}

/** A request of a client, without its params. */
export interface RequestContext {
  readonly id: Json;
  /** The id as JSON. */
  readonly idText: string;
  readonly method: string;
  /** The members next to `method` and `params` that JSON-RPC does not define. */
  readonly members: JsonObject | undefined;
  /** The `_meta` of its params. */
  readonly meta: JsonObject | undefined;
  /** The reserved keys of its `_meta`, in the stateless revision. */
  readonly envelope: JsonObject | undefined;
  /** The answers of the client to earlier questions. */
  readonly inputResponses: JsonObject | undefined;
  /** The `requestState` that the client sends back. */
  readonly requestState: unknown;
  /** Cancels the request. */
  readonly cancellation: Cancellation;
  /** The headers that came with it over HTTP, which repeat arguments. */
  readonly headers: Pick<Headers, "get"> | undefined;
  /** Sends a request to the client while this one waits, and returns its result. */
  ask(method: string, params: JsonObject, options: ClientRequestOptions): Promise<JsonObject>;
  /** Sends a notification to the client. */
  notify(notification: SentNotification): Promise<void>;
  /**
   * Whether the client takes members that JSON-RPC does not define: it sent such members itself.
   * Clients with the TypeScript SDK ignore a message that has them, and would wait forever.
   */
  readonly takesMembers: boolean;
  /** Adds members next to `result` to the answer. */
  answerWith(members: JsonObject): void;
  /** When PML began to serve the request, by `performance.now()`. */
  readonly since: number;
  /** The span of the request, if PML records traces. The span ends with the request. */
  trace?: RequestSpan | undefined;
}

/** The options of a request to the client. */
export interface ClientRequestOptions {
  readonly params?: JsonObject;
  /** Cancels the request. */
  readonly signal?: AbortSignal | undefined;
  /** The id, as JSON, of the client's request during which PML asks. */
  readonly related?: string;
  /** How long the client may take, in milliseconds. */
  readonly ms: number;
  /** Receives the progress that the client reports. */
  readonly onProgress?: CallClient["onProgress"];
  /** Members next to `method` and `params`, which the client gets if it accepts them. */
  readonly members?: JsonObject | undefined;
}

/** A request that was served. */
export interface ServedOperation {
  readonly method: string;
  /** The name of the tool that the client sent; empty for other methods. */
  readonly tool: string;
  readonly ms: number;
  /** The `error.type` of the OpenTelemetry conventions; empty if the request succeeded. */
  readonly error: string;
}

/** The connection of one client, until it is closed. */
export interface Connection {
  readonly isStateless: boolean;
  /** Returns the result of a request. */
  serve(params: unknown, context: RequestContext): Promise<JsonObject>;
  /** Receives a request that was served, for the metrics. */
  countServed?(operation: ServedOperation): void;
  /** Receives a notification with an unknown method, or with unknown members. */
  handleNotification(notification: UnknownNotification): void;
  close(): void;
}

/** Opens the connections of one transport or server. */
export interface ConnectionFactory {
  /**
   * Opens a connection. `owner` identifies who may use its tasks and questions. Each HTTP session has
   * its own owner.
   */
  readonly connect: (peer: ClientPeer, isStateless: boolean, owner?: object) => Connection;
}
