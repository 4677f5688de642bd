/**
 * The interfaces between the runtimes of server kinds and the code that opens servers with them.
 *
 * @module
 */

import type { Approval, KnownServerOptions } from "./known_server.ts";
import type { Manifest } from "./manifest.ts";
import type { Server } from "./server.ts";
import type { ServerIdentity } from "../policy/server_identity.ts";
import type { StartProgress } from "./client/start_progress.ts";
import type { Upstreams } from "./client/upstreams.ts";
import type { ModuleUse } from "./module/loader.ts";
import type { Modules } from "./module/modules.ts";
import type { HttpServers } from "./http/http_servers.ts";
import type { HttpValues } from "./http/http_options.ts";
import type { HubRouting } from "./cloud/hub_routing.ts";
import type { Cloud } from "./cloud/rpc.ts";
import type { StdioServers } from "./stdio/stdio_servers.ts";
import type { StdioValues } from "./stdio/program_host.ts";
import type { CapabilityRunner } from "./capability/capability_server.ts";
import type {
  DefinitionTexts,
  ProgramDefinition,
  RemoteDefinition,
  ServerDefinition,
  TrialBounds,
} from "./kind.ts";

/** Replaces the variables in definitions by their values. */
export interface DefinitionFiller {
  /** Returns the command of a program, with its arguments and environment. */
  stdio(definition: ProgramDefinition): StdioValues;
  /** Returns an address with its headers. */
  http(definition: RemoteDefinition): HttpValues;
  /**
   * Returns the texts of a definition of any kind with values. Throws `KEY_MISSING` without a
   * value.
   */
  fillTexts(definition: ServerDefinition): DefinitionTexts;
}

/** The facts that a source found about a server. */
export interface FoundServer {
  readonly approval: Approval;
  /** The kind that opens the server; undefined if no kind can, so that each call fails. */
  readonly kind: string | undefined;
  /** The definition; undefined for servers in the cloud and for saved capabilities. */
  readonly definition?: ServerDefinition;
  /** The manifest of a server of a registry. */
  readonly manifest?: Manifest;
  /**
   * Fills in the variables of the definition. If undefined, the filler for servers of files does.
   */
  readonly values?: DefinitionFiller;
  /** Returns where the code is now, its approved hash and its grants, if the server has code. */
  readonly use?: () => ModuleUse;
  /** Fetches the code before it is read. */
  readonly fetchCode?: () => Promise<void>;
}

/** The installed packages of servers, and the identities that approvals cover. */
export interface ServerPackages {
  /** Returns the identity of a server. The installation of its package can change the identity. */
  identityOf(definition: ServerDefinition): ServerIdentity;
  /** Adds the identity of a server of a registry, by its definition. */
  addIdentity(definition: ServerDefinition, identity: ServerIdentity): void;
}

/**
 * The part of PML that starts programs, runs modules and reaches addresses. `Machine` implements
 * it.
 */
export interface ServerMachine {
  readonly programs: StdioServers;
  readonly addresses: HttpServers;
  /** The connections to programs and addresses. */
  readonly upstreams: Upstreams;
  readonly hub: HubRouting;
  /** The connections to the cloud. */
  readonly cloudUpstreams: Upstreams;
  readonly packages: ServerPackages;
  /** Reports the progress of starts to the calls that wait for them. */
  readonly starts: Pick<StartProgress, "report">;
  /** Aborts when PML ends. */
  readonly closing: AbortSignal;
  /** Returns a program with the settings of its trial by `pml learn`, if there is one. */
  withTrial(server: StdioValues): StdioValues;
  /** Returns the bounds of the trial by `pml learn` of a server, if there is one. */
  trialOf(server: string): TrialBounds | undefined;
  /** Returns the client of the cloud. The first connection loads it. */
  cloud(): Promise<Cloud>;
  /** Returns the runner of modules. The first module loads it. */
  modules(): Promise<Modules>;
}

/** The services that the runtimes of all kinds share. */
export interface ServerHost {
  readonly machine: ServerMachine;
  /** Returns the saved capabilities. */
  capabilities(): Promise<CapabilityRunner>;
  /** Watches the user's sign-ins, if the process is long-running. */
  followSignIns(): void;
}

/** The runtime of a kind. */
export interface KindRuntime {
  /** Opens a server. `values` fills in the variables of its definition. Starts nothing. */
  open(options: KnownServerOptions, found: FoundServer, values: DefinitionFiller): Server;
}

/** Loads the runtime of a kind. */
export type LoadRuntime = (host: ServerHost) => Promise<KindRuntime>;
