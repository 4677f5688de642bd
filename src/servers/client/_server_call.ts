/**
 * A call or another request, as its server gets it.
 *
 * @module
 */

import type { JsonObject } from "../../core/json.ts";
import type { CheckedCall } from "../server.ts";
import type { ServerConnection } from "./connection.ts";
import type { ListKey } from "./_server_lists.ts";
import type { UpstreamServer } from "./upstream_server.ts";

/** A call or another request, as its server gets it. */
export interface ServerCall {
  readonly server: UpstreamServer;
  readonly call: CheckedCall;
  /** The owner of the lists, computed once because it takes a hash. */
  readonly owner: ListKey;
  readonly params: JsonObject;
  /** Whether the server must list the tool that was checked. */
  readonly isCompared: boolean;
  /** The connection that it was sent on last, and whether its session uses the stateless revision. */
  connection: ServerConnection | undefined;
  isStateless: boolean;
}
