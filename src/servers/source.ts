/**
 * The interface of a source of servers. A source lists its servers, and its finder finds the
 * definition and the approval of each server. PML loads the source when it starts, and the finder
 * when it opens the first server.
 *
 * @module
 */

import type { Listing } from "./known_server.ts";
import type { Manifest } from "./manifest.ts";
import type { Origin, Server } from "./server.ts";
import type { ServerIdentity, Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ModuleSource } from "./module/module_files.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import type { Fqdn } from "../registry/fqdn.ts";
import type { CapabilityRunner, SavedNamespaces } from "./capability/capability_server.ts";
import type { DefinitionFiller, FoundServer, ServerMachine } from "./host.ts";
import type { ServerDefinition } from "./kind.ts";

/** A server of a source. */
export interface ServerListing extends Listing {
  readonly entry?: undefined;
  readonly origin: ServerSource;
}

/** A capability of a source, such as `fs:read_json`: the tool `read_json` in the namespace `fs`. */
export interface ActionListing {
  readonly namespace: string;
  readonly action: string;
  readonly listing: ServerListing;
}

/** A source of servers. */
export interface ServerSource extends Origin {
  /** Whether the finder of the source may find servers that no source lists. */
  readonly findsUnlisted?: boolean;
  /**
   * Returns the servers of the source, without waiting or starting anything. The directory leaves
   * out names that an earlier source in `SOURCES` has.
   */
  list(): readonly ServerListing[];
  /** Returns the capabilities of the source. Each capability has its own approval. */
  actions?(): readonly ActionListing[];
  /** Opens the finder of the source. Called once. */
  finder(services: SourceServices): Promise<SourceFinder>;
}

/** The constructor of a source. */
export type SourceClass = new (host: SourceHost) => ServerSource;

/** Finds the definitions and approvals of the servers of a source. */
export interface SourceFinder {
  /** Finds a listed server. Returns undefined if the source no longer has it. */
  find(listing: ServerListing): FoundServer | undefined;
  /** Finds a name that no source lists. Returns undefined for an unknown name. */
  findUnlisted?(name: string): FoundServer | undefined;
}

/** The facts from which sources list servers. All are available without waiting. */
export interface SourceHost {
  readonly policy: Policy;
  /** The names of the servers that ship with PML. */
  readonly builtins: ReadonlySet<string>;
  /** The servers of registries that the user approved; undefined if there is none. */
  readonly registryServers: ApprovedServers | undefined;
  /** The saved capabilities; undefined if they were not loaded. */
  readonly savedCapabilities: SavedNamespaces | undefined;
}

/** The servers of registries that the user approved in this workspace. */
export interface ApprovedServers {
  /** Returns the names of servers, without names that a file defines. */
  servers(): readonly string[];
  /** Returns the names of capabilities, such as `fs:read_json`. */
  capabilities(): readonly string[];
  /** Returns the manifest of a server or capability; undefined if it is not loaded. */
  manifestOf(name: string): Manifest | undefined;
  /** Returns why a server may not be used without another approval; undefined if it may. */
  whyBlocked(name: string): string | undefined;
}

/** A server of a registry that the user approved. */
export interface RegisteredServer {
  readonly entry: { readonly manifest: Manifest };
  readonly identity: ServerIdentity;
  /** The definition of the server; undefined if the cloud runs the server. */
  readonly definition: ServerDefinition | undefined;
}

/** The options of a lookup of a name. */
export interface LookupOptions {
  readonly signal: AbortSignal;
  /** Whether a rule of the user allows the first use of the name without a question. */
  readonly isAllowed: boolean;
  /**
   * Whether the user wrote the name, a rule contains it, or a list of cloud servers does. A model
   * may have invented any other name.
   */
  readonly isNamed: boolean;
  /** The called tool, whose texts the approval request shows. */
  readonly tool?: string;
}

/** Looks names up in registries. Never sends a disabled or private name to a registry. */
export interface RegistryNames {
  readonly offers: {
    /** Returns the name of the entry that offers a tool; undefined if it is not known. */
    entryOf(tool: Fqdn): Promise<string | undefined>;
  };
  /** Returns a server that the user approved in this workspace. */
  find(name: string): RegisteredServer | undefined;
  /** Returns the name of the registry's entry that has the tool `tool` of a server. */
  entryOf(server: string, tool: string, isNamed: boolean): Promise<string>;
  /** Returns an approval request for a server or a capability; undefined if it is approved. */
  findUnapproved(name: string, options: LookupOptions): Promise<Unapproved | undefined>;
  /** Fetches the code of a module before it is read. */
  fetchCode(
    name: string,
    how: { readonly signal: AbortSignal; readonly tell: (message: string) => void },
  ): Promise<void>;
}

/** The parts of PML that are loaded when they are first needed. `App` implements this interface. */
export interface LateParts {
  /** Loads the modules that ship with PML. */
  builtinModules(): Promise<ReadonlyMap<string, ModuleSource>>;
  /** Loads the code that looks up names in registries. */
  registries(): Promise<RegistryNames>;
  /** Loads the saved capabilities. */
  capabilities(): Promise<{ readonly capabilities: CapabilityRunner }>;
}

/** The services that finders use. */
export interface SourceServices {
  readonly policy: Policy;
  readonly pins: Pins;
  readonly machine: ServerMachine;
  readonly servers: {
    /** Returns the instructions that a server sent last. */
    sentInstructionsOf(server: string): ToolDefinition | undefined;
  };
  /** Loads the modules that ship with PML. */
  builtins(): Promise<ReadonlyMap<string, ModuleSource>>;
  /** Loads the code that looks up names in registries. */
  registries(): Promise<RegistryNames>;
  /** Returns the object that fills in the variables of definitions of registries. */
  registryValues(registries: RegistryNames): DefinitionFiller;
}

/** Opens the servers that the directory lists. */
export interface ServerOpening {
  open(listing: DirectoryListing): Promise<Server>;
  /** Opens a part of a namespace. The runtime of its kind must be loaded. */
  openPart(listing: ServerListing): Server;
}

/** A name with several parts: capabilities of registries, and perhaps the server of this name. */
export interface NamespaceListing extends Listing {
  readonly entry: "namespace";
  readonly definition: NamespaceDefinition;
}

/** The parts of a namespace: the same object until a part changes. */
export interface NamespaceDefinition {
  /**
   * The server of this name, or the saved capabilities. If two parts have a tool, this one is used.
   */
  readonly base: ServerListing | undefined;
  readonly actions: readonly ActionListing[];
}

/** A name that no source lists: an unknown name, or a name that a file disables. */
export interface MissingListing extends Listing {
  readonly entry: "unknown" | "disabled";
}

/** An entry of the directory. */
export type DirectoryListing = ServerListing | NamespaceListing | MissingListing;
