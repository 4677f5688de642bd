/**
 * The events that servers report on their own, and their listeners.
 *
 * @module
 */

import type {
  CallClient,
  MethodNotification,
  OtherMembers,
  ServerRequest,
} from "../../protocol/call.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ListName } from "../../protocol/lists.ts";

/** The listeners to the notifications of servers. */
export interface UpstreamEvents {
  /** Is called when a list has changed, with the members that PML does not know. */
  readonly changed: (server: string, list: ListName, members?: OtherMembers) => void;
  /** Is called when a followed resource has changed, with the members that PML does not know. */
  readonly updated: (server: string, uri: string, members?: OtherMembers) => void;
  /**
   * Receives the params of `notifications/message`, and the members next to them. The logger begins
   * with the server's name.
   */
  readonly logged: (message: JsonObject, members?: JsonObject) => void;
  /** Receives the params of a notification about a task. */
  readonly task?: (server: string, state: JsonObject) => void;
  /**
   * Receives the params of the notification that the user has finished with a page, and its
   * members.
   */
  readonly elicited: (params: JsonObject, members?: JsonObject) => void;
  /** Receives a notification that PML does not know, and the client it is for, if that is known. */
  readonly notified: (
    server: string,
    notification: MethodNotification & { readonly client: CallClient | undefined },
  ) => void;
  /**
   * Passes a request of a server to the client while PML has no open call; undefined if there is
   * more than one client.
   */
  readonly asked?: ((request: ServerRequest) => Promise<JsonObject>) | undefined;
}
