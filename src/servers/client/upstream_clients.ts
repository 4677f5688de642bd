/**
 * The clients of a PML, as its connections to servers see them.
 *
 * @module
 */

import type { CallClient, MethodNotification, OtherMembers } from "../../protocol/call.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ListName } from "../../protocol/lists.ts";

/** The clients, which get the notifications of servers. */
export interface UpstreamClients {
  /** The log level that clients have set, if any. */
  readonly level: string | undefined;
  /**
   * Passes a request of a server to the client while PML has no open call; undefined if there is
   * more than one client.
   */
  readonly asked?: CallClient["onAsk"];
  /** Returns the capabilities that servers get for a client with these, or for all clients. */
  capabilities(able?: JsonObject): JsonObject;
  /** Returns the name of the client that servers get, for a client with this one or for all. */
  clientInfo(info?: JsonObject): JsonObject | undefined;
  /** Is called when a list has changed, with the members that PML does not know. */
  changed(server: string, list: ListName, members?: OtherMembers): void;
  /** Is called when a followed resource has changed, with the members that PML does not know. */
  updated(server: string, uri: string, members?: OtherMembers): void;
  /**
   * Receives the params of `notifications/message`, and the members next to them. The logger begins
   * with the server's name.
   */
  logged(message: JsonObject, members?: JsonObject): void;
  /** Receives the params of a notification about a task. */
  task(server: string, state: JsonObject): void;
  /**
   * Receives the params of the notification that the user has finished with a page, and its
   * members.
   */
  elicited(params: JsonObject, members?: JsonObject): void;
  /** Receives a notification that PML does not know, and the client it is for, if that is known. */
  notified(
    server: string,
    notification: MethodNotification & { readonly client: CallClient | undefined },
  ): void;
}
