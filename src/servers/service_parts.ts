/**
 * The parts of a running PML that find, open and reach servers.
 *
 * @module
 */

import type { Log } from "../audit/log.ts";
import type { Metrics } from "../audit/metrics.ts";
import type { Redactor } from "../audit/redact.ts";
import type { Keys } from "../config/keys.ts";
import type { Backlog } from "../io/backlog.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import type { Tracer } from "../protocol/trace.ts";
import type { UpstreamClients } from "./client/upstream_clients.ts";
import type { ClientRoots } from "./client_roots.ts";
import type { Directory } from "./directory.ts";
import type { Servers } from "./lists/servers.ts";
import type { ModuleFiles } from "./module/module_files.ts";
import type { LateParts } from "./source.ts";
import type { SpareOwner } from "./stdio/program_host.ts";

/** The parts of a running PML that were created before its first call. */
export interface ServiceParts {
  readonly policy: Policy;
  readonly files: ModuleFiles;
  readonly keys: Keys;
  readonly pins: Pins;
  readonly log: Log;
  readonly redactor: Redactor;
  /** Counts requests, also those to servers. */
  readonly metrics: Metrics;
  /** Records the spans of requests; undefined if PML records no traces. */
  readonly tracer?: Tracer | undefined;
  readonly servers: Servers;
  readonly directory: Directory;
  /** The parts that PML opens at their first use. */
  readonly lateParts: LateParts;
  readonly backlog?: Backlog;
  /** The roots of the client, if only one client uses the servers. */
  readonly clientRoots?: ClientRoots;
  /** Owns the supervisor process that PML started in advance for the first program. */
  readonly spares?: SpareOwner;
  /** The clients, which get the notifications of servers. */
  readonly clients: UpstreamClients;
  /**
   * Whether a client started PML. Then a helper process (`sandbox/reaper.ts`) kills PML if PML
   * hangs after the client has ended.
   */
  readonly hasClient?: boolean;
  /**
   * Whether the process runs until it is stopped, as `pml stdio` and `pml serve` do. In such a
   * process, a search may install the configured model, and PML watches for sign-ins in other
   * processes.
   */
  readonly isLongRunning?: boolean;
}
