/**
 * A request of a client, the scope that the calls made for it share, and requests to the client.
 *
 * @module
 */

import type { ApprovalAnswer, Call, CallClient, ServerRequest } from "../../protocol/call.ts";
import { type JsonObject, sorted } from "../../core/json.ts";
import type { Toolset } from "../../protocol/toolset.ts";
import type { RequestContext } from "../../protocol/connection.ts";
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
  /** Returns the tools that exist for the client now; undefined for all. */
  readonly toolset: () => Toolset | undefined;
}

/** The members that all calls made for one request share. */
export type RequestScope = Pick<Call, "cancellation" | "client"> & {
  /** The answer of the user to an approval request, if the client sent one. */
  readonly answer: ApprovalAnswer | undefined;
};

/**
 * Sends a request for input of the user or the model to a client, and returns the result. Rejects
 * with the reason of the signal if that aborts.
 */
export type RequestInput = (
  request: Pick<ServerRequest, "key" | "method" | "params" | "members" | "signal" | "onProgress">,
) => Promise<JsonObject>;

/** The functions by which calls get input from a client: for servers, and for PML. */
export type ClientInput = Required<Pick<CallClient, "onAsk" | "onQuestion">>;

/** Returns a text that is equal for two requests exactly if the second one repeats the first. */
export function identityOf({ context, params: { _meta: _, ...rest } }: ClientRequest): string {
  return sorted([context.method, rest]);
}
