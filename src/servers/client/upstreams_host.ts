/**
 * The PML that connections to servers belong to.
 *
 * @module
 */

import type { JsonObject } from "../../core/json.ts";
import type { PoolLimits } from "../../io/pool.ts";
import type { StartProgress } from "./start_progress.ts";
import type { UpstreamClients } from "./upstream_clients.ts";
import type { UpstreamServer } from "./upstream_server.ts";

/** The limits of a connection. */
export interface ConnectionLimits {
  readonly startMs: number;
  readonly catalogTools: number;
}

/** The PML that connections to servers belong to. `Machine` implements it. */
export interface UpstreamsHost {
  /** The PML home, where lists are cached. */
  readonly home: string;
  /** The workspace now. */
  readonly workspace: string;
  /** The limits now. */
  readonly limits: ConnectionLimits & PoolLimits;
  readonly clients: UpstreamClients;
  /** Reports installations to the calls that wait for them. */
  readonly starts: StartProgress;
  /** Returns the present server of a name on these connections, for work in the background. */
  upstreamOf(name: string, upstreams: object): UpstreamServer;
  /** Returns the roots that a server may see. */
  roots(server: string): Promise<readonly JsonObject[]>;
  /** Returns whether the rules allow resources of a server to be followed. */
  mayFollow(server: string): boolean;
  /** Removes secrets from texts of servers that are not results. */
  withoutSecrets<T>(value: T): T;
  /** Logs a text of a server that is not a message. */
  logServer(server: string, level: "debug" | "info" | "warn", text: string): void;
}
