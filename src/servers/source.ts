/**
 * The interface of a source of servers: it lists the servers that it has, and finds the definition
 * and the approval of each. A start loads this half of a source; a finder is loaded by the first
 * server that is opened.
 *
 * @module
 */

import type { Approval, KnownServerOptions, Listing } from "./known_server.ts";
import type { Manifest } from "./manifest.ts";
import type { Origin, Server } from "./server.ts";
import type { ServerIdentity, Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { ModuleSource } from "./module/module_files.ts";
import type { Pins } from "../policy/pins.ts";
import type { Policy } from "../policy/policy.ts";
import type { Fqdn } from "../registry/fqdn.ts";
import type { CapabilityRunner, SavedNamespaces } from "./capability/capability_server.ts";
import type { DefinitionFiller, OpenOptions, ServerMachine } from "./host.ts";
import type { ServerDefinition } from "./kind.ts";

/** A server of a source. */
export interface ServerListing extends Listing {
  readonly entry?: undefined;
  readonly origin: ServerSource;
}

/** A capability of a source, which is a tool in the namespace of its name. */
export interface ActionListing {
  readonly namespace: string;
  readonly action: string;
  readonly listing: ServerListing;
}

/** A source of servers. */
export interface ServerSource extends Origin {
  /** Whether its finder may know names that no source lists. */
  readonly findsUnlisted?: boolean;
  /**
   * Returns its servers. It waits for nothing and starts nothing. The directory leaves out the names
   * that a source before this one has.
   */
  list(): readonly ServerListing[];
  /** Returns its capabilities, each of which is approved by itself. */
  actions?(): readonly ActionListing[];
  /** Opens its finder. It is called once. */
  finder(services: SourceServices): Promise<SourceFinder>;
}

/** A class of a source. */
export type SourceClass = new (host: SourceHost) => ServerSource;

/** Finds the definitions and approvals of the servers of a source. */
export interface SourceFinder {
  /** Finds a listed server. Returns undefined if the source does not have it any longer. */
  find(listing: ServerListing): FoundServer | undefined;
  /** Finds a name that no source lists. Returns undefined for an unknown name. */
  findUnlisted?(name: string): FoundServer | undefined;
}

/** A server as its source found it. */
export interface FoundServer extends Partial<Omit<OpenOptions, keyof KnownServerOptions>> {
  readonly approval: Approval;
  /** The kind that opens it. Undefined if nothing can be opened: each call fails then. */
  readonly kind: string | undefined;
}

/** The facts that sources list servers from. All are known at once. */
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
  /** Returns the names of servers. None is the name of a server that a file defines. */
  servers(): readonly string[];
  /** Returns the names of capabilities, such as `fs:read_json`. */
  capabilities(): readonly string[];
  manifestOf(name: string): Manifest | undefined;
  /** Returns the reason why a server may not be used as it is; undefined if it may. */
  blocked(name: string): string | undefined;
}

/** A server of a registry that the user approved. */
export interface RegisteredServer {
  readonly entry: { readonly manifest: Manifest };
  readonly identity: ServerIdentity;
  /** Undefined if the cloud runs it. */
  readonly definition: ServerDefinition | undefined;
}

/** The facts that are known of a name before it is looked up. */
export interface LookupOptions {
  readonly signal: AbortSignal;
  /** Whether the user allowed its first use beforehand. */
  readonly isAllowed: boolean;
  /** Whether the user, or PML itself, named it. */
  readonly isNamed: boolean;
  /** The called tool, whose texts the approval request shows. */
  readonly tool?: string;
}

/** Looks names up in registries. A disabled or private name reaches none. */
export interface RegistryNames {
  readonly offers: {
    /** Returns the name of the entry that offers a tool; undefined if it is not known. */
    entryOf(tool: Fqdn): Promise<string | undefined>;
  };
  /** Returns a server that the user approved here. */
  at(name: string): RegisteredServer | undefined;
  /** Returns the name under which a registry has a tool. */
  entryOf(server: string, tool: string, isNamed: boolean): Promise<string>;
  /** Returns the parts of a server or a capability that are not approved. */
  unapproved(name: string, options: LookupOptions): Promise<Unapproved | undefined>;
  /** Fetches the code of a module before it is read. */
  ready(
    name: string,
    how: { readonly signal: AbortSignal; readonly tell: (message: string) => void },
  ): Promise<void>;
}

/** The parts of PML that are opened when they are first needed. `App` implements it. */
export interface LateParts {
  /** Loads the modules that ship with PML. */
  builtinModules(): Promise<ReadonlyMap<string, ModuleSource>>;
  /** Loads the servers of registries. */
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
    /** Returns the instructions of a server as it sent them last. */
    saidBy(server: string): ToolDefinition | undefined;
  };
  /** Loads the modules that ship with PML. */
  builtins(): Promise<ReadonlyMap<string, ModuleSource>>;
  /** Loads the servers of registries. */
  registries(): Promise<RegistryNames>;
  /** Returns the values of definitions of registries. */
  registryValues(registries: RegistryNames): DefinitionFiller;
}

/** Opens the servers that the directory lists. */
export interface ServerOpening {
  open(listing: DirectoryListing): Promise<Server>;
  /** Opens a part of a namespace, whose runtime is loaded. */
  openPart(listing: ServerListing): Server;
}

/** A name with several parts: capabilities, and next to them the server of this name. */
export interface NamespaceListing extends Listing {
  readonly entry: "namespace";
  readonly definition: NamespaceDefinition;
}

/** The parts of a namespace: the same object as long as each part is the same. */
export interface NamespaceDefinition {
  /** The server of this name, or the saved capabilities. Its tools win. */
  readonly base: ServerListing | undefined;
  readonly actions: readonly ActionListing[];
}

/** A name that no source lists: an unknown one, or one that a file disables. */
export interface MissingListing extends Listing {
  readonly entry: "unknown" | "disabled";
}

/** An entry of the directory. */
export type DirectoryListing = ServerListing | NamespaceListing | MissingListing;
