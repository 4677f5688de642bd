/**
 * What servers tell of themselves, and who takes it.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import type { ListName } from "../core/lists.ts";

/** Who is told of what servers say of themselves. */
export interface UpstreamEvents {
  /** A list is another one. */
  readonly changed: (server: string, list: ListName) => void;
  /** A resource that is followed has changed. */
  readonly updated: (server: string, uri: string) => void;
  /** A log message: the params of `notifications/message`, with the server in its logger. */
  readonly logged: (message: JsonObject) => void;
  /** A task stands as the params of its notification say. */
  readonly task?: (server: string, state: JsonObject) => void;
  /** A page that the person was sent to is done with: the params of its notification. */
  readonly elicited: (params: JsonObject) => void;
}
