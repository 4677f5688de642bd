/**
 * The interface through which connections to servers reach the clients of PML.
 *
 * @module
 */

import type { CallClient, MethodNotification, OtherMembers } from "../../protocol/call.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ListName } from "../../protocol/lists.ts";

/**
 * The clients of PML, as connections to servers see them: they get the notifications of servers.
 */
export interface UpstreamClients {
  /** The log level that clients have set, if any. */
  readonly level: string | undefined;
  /**
   * Passes a request of a server that belongs to no call to the client. Undefined if there is more
   * than one client, because the right client is not known then.
   */
  readonly onRequest?: CallClient["onServerRequest"];
  /**
   * Returns the capabilities for servers: of the client that declared `clientCapabilities`, or of
   * all clients together.
   */
  capabilities(clientCapabilities?: JsonObject): JsonObject;
  /** Returns the `clientInfo` for servers. `info` is that of the requesting client, if any. */
  clientInfo(info?: JsonObject): JsonObject | undefined;
  /** Is called when a list has changed, with the members that PML does not know. */
  onListChanged(server: string, list: ListName, members?: OtherMembers): void;
  /** Is called when a followed resource has changed, with the members that PML does not know. */
  onResourceUpdated(server: string, uri: string, members?: OtherMembers): void;
  /**
   * Receives the params of `notifications/message`, and the members next to them. The logger begins
   * with the server's name.
   */
  onLog(message: JsonObject, members?: JsonObject): void;
  /** Receives the params of a notification about a task. */
  onTask(server: string, state: JsonObject): void;
  /**
   * Receives the params of `notifications/elicitation/complete`, and the members that JSON-RPC does
   * not define.
   */
  onElicitationComplete(params: JsonObject, members?: JsonObject): void;
  /** Receives a notification that PML does not know, and the client for which it is, if known. */
  onNotification(
    server: string,
    notification: MethodNotification & { readonly client: CallClient | undefined },
  ): void;
}
