/**
 * The interface of the process of PML to which connections to servers belong.
 *
 * @module
 */

import type { Metrics } from "../../audit/metrics.ts";
import type { JsonObject } from "../../core/json.ts";
import type { PoolLimits } from "../../io/pool.ts";
import type { Tracer } from "../../protocol/trace.ts";
import type { StartProgress } from "./start_progress.ts";
import type { UpstreamClients } from "./upstream_clients.ts";
import type { UpstreamServer } from "./wire.ts";

/** The limits of a connection. */
export interface ConnectionLimits {
  /** How long a server may take to start, in milliseconds. */
  readonly startMs: number;
  /** The maximum number of items in one list of a server. */
  readonly catalogTools: number;
}

/** The services of PML that connections to servers use. `Machine` implements it. */
export interface UpstreamsHost {
  /** The PML home, where lists are cached. */
  readonly home: string;
  /** The current workspace. */
  readonly workspace: string;
  /** The current limits. */
  readonly limits: ConnectionLimits & PoolLimits;
  readonly clients: UpstreamClients;
  /** Counts the requests to servers. */
  readonly metrics: Pick<Metrics, "countSent"> | undefined;
  /** Records the spans of requests; undefined if PML records no traces. */
  readonly tracer: Tracer | undefined;
  /** Reports installations to the calls that wait for them. */
  readonly starts: StartProgress;
  /**
   * Returns the server that has this name now, if it uses these connections (`upstreams`). For work
   * in the background, which has only the name.
   */
  upstreamOf(name: string, upstreams: object): UpstreamServer;
  /** Returns the roots that a server may see. */
  roots(server: string): Promise<readonly JsonObject[]>;
  /** Returns whether the current rules allow following resources of a server. */
  mayFollow(server: string): boolean;
  /** Removes secrets from values of a server other than the results of calls. */
  withoutSecrets<T>(value: T): T;
  /** Logs a text of a server that is not a message. */
  logServer(server: string, level: "debug" | "info" | "warn", text: string): void;
}
