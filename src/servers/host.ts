/**
 * The interfaces between the runtimes of server kinds and the app, which opens servers with them.
 *
 * @module
 */

import type { KnownServerOptions } from "./known_server.ts";
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
} from "./kind.ts";

/** Fills in the variables of definitions. */
export interface DefinitionFiller {
  /** Returns the command of a program, with its arguments and environment. */
  stdio(own: ProgramDefinition): StdioValues;
  /** Returns an address with its headers. */
  http(own: RemoteDefinition): HttpValues;
  /** Returns the texts of a definition of any kind, filled in. Throws KEY_MISSING. */
  filled(own: ServerDefinition): DefinitionTexts;
}

/** A server to open: its approval, and the parts that its source found. */
export interface OpenOptions extends KnownServerOptions {
  /** The definition; undefined for servers in the cloud and for saved capabilities. */
  readonly definition?: ServerDefinition;
  /** The manifest of a server of a registry. */
  readonly manifest?: Manifest;
  /** Fills in the variables of the definition. */
  readonly values: DefinitionFiller;
  /** Returns the present code and its approved hash, if the server has code. */
  readonly use?: () => ModuleUse;
  /** Fetches the code before it is read. */
  readonly fetched?: () => Promise<void>;
}

/** The packages of servers, and the identities that approvals bind to. */
export interface ServerPackages {
  /** Returns the identity of a server. An install can change it. */
  identityOf(own: ServerDefinition): ServerIdentity;
  /** Adds the identity of a server of a registry, by its definition. */
  addIdentity(definition: ServerDefinition, identity: ServerIdentity): void;
}

/** The machine that starts programs, runs modules and reaches addresses. */
export interface ServerMachine {
  readonly programs: StdioServers;
  readonly addresses: HttpServers;
  /** The connections to programs and addresses. */
  readonly upstreams: Upstreams;
  readonly hub: HubRouting;
  /** The connections to the cloud. */
  readonly far: Upstreams;
  readonly packages: ServerPackages;
  /** The progress of starts, which calls wait for. */
  readonly starts: Pick<StartProgress, "tell">;
  /** Aborts when PML ends. */
  readonly closing: AbortSignal;
  /** Returns a program with the settings of its trial, if there is one. */
  withTrial(server: StdioValues): StdioValues;
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
  /** Follows where the user signs in, if the process stays. */
  followSignIns(): void;
}

/** The runtime of a kind. */
export interface KindRuntime {
  /** Opens a server. Starts nothing. */
  open(options: OpenOptions): Server;
}

/** Loads the runtime of a kind. */
export type LoadRuntime = (host: ServerHost) => Promise<KindRuntime>;
