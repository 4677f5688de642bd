/**
 * Opens the servers that the directory lists. The source of a server finds its definition and its
 * approval, and the runtime of its kind opens it.
 *
 * @module
 */

import type { FindTool, Listing } from "./known_server.ts";
import type { Server } from "./server.ts";
import { unknownTool } from "./lists/unknown_tool.ts";
import { McpServer } from "./client/mcp_server.ts";
import type { UpstreamServer } from "./client/upstream_server.ts";
import type { Upstreams } from "./client/upstreams.ts";
import { kindNamed, KINDS } from "./kinds.ts";
import { Runtimes } from "./runtimes.ts";
import type {
  DirectoryListing,
  FoundServer,
  MissingListing,
  NamespaceListing,
  ServerListing,
  ServerOpening,
  ServerSource,
  SourceFinder,
} from "./source.ts";
import { NameApproval, NamespaceApproval } from "./sources/name_approval.ts";
import { NothingToApprove } from "./sources/nothing_to_approve.ts";
import { DefinitionValues } from "./definition_values.ts";
import { Logins } from "../oauth/logins.ts";
import { Machine } from "./machine.ts";
import { NamespaceServer } from "./namespace_server.ts";
import { ServerServices, type ServiceParts, SignInServers } from "./server_services.ts";
import { UnknownServer } from "./unknown_server.ts";

/** The kinds of servers that connections lead to: programs, addresses and the cloud. */
const CONNECTED = KINDS.filter(({ isSandboxed }) => !isSandboxed).map(({ name }) => name);

/** The approval of disabled names: a call of one fails without an approval request. */
const DISABLED = new NothingToApprove("a server that a file disables");

/** Opens servers of every kind. Starts nothing before the first call. */
export class ServerOpener implements ServerOpening {
  /** Runs and reaches the servers. */
  readonly machine: Machine;
  /** Signs the user in at servers. */
  readonly logins: Logins;
  readonly #services: ServerServices;
  readonly #options: ServiceParts;
  readonly #find: FindTool;
  readonly #servers = new WeakMap<Listing, Server>();
  readonly #values: DefinitionValues;
  readonly #runtimes: Runtimes;
  readonly #finders = new Map<ServerSource, SourceFinder>();
  readonly #loading = new Map<ServerSource, Promise<void>>();

  /** Takes the options. Opens nothing. */
  constructor(options: ServiceParts) {
    const { policy, servers } = options;
    this.#options = options;
    this.#values = new DefinitionValues(options);
    this.#find = (id) => servers.definition(id);
    this.machine = new Machine({
      ...options,
      values: this.#values,
      opener: this,
    });
    const signIns = new SignInServers(this, this.machine, options);
    this.logins = new Logins(policy.now.config.home, signIns, this.machine.closing);
    this.#services = new ServerServices(options, this.machine, this.logins);
    this.#runtimes = new Runtimes(this.#services);
  }

  /** Opens a server: the same one for the same listing. */
  async open(listing: DirectoryListing): Promise<Server> {
    if (!listing.origin.isShipped) await this.#options.keys.looked();
    // The pin of a name decides whether the cloud may be asked for it.
    // guard: pinned-read
    if (listing.definition === undefined) await this.#options.pins.state();
    await Promise.all([
      ...this.#sourcesOf(listing).map((source) => this.#loadFinder(source)),
      ...runtimesOf(listing).map((kind) => this.#runtimes.load(kind)),
    ]);
    return this.#open(listing);
  }

  /** Opens a part of a namespace. */
  openPart(listing: ServerListing): Server {
    return this.#open(listing);
  }

  #open(listing: DirectoryListing): Server {
    const openServer = this.#servers.get(listing);
    if (openServer !== undefined) return openServer;
    const server = listing.entry === "namespace"
      ? this.#namespace(listing)
      : this.#openFound(listing, this.#findServer(listing));
    this.#servers.set(listing, server);
    return server;
  }

  #openFound(listing: Listing, { approval, kind, ...parts }: FoundServer): Server {
    const options = { listing, approval, find: this.#find };
    if (kind === undefined) return new UnknownServer(options, this.#options.servers);
    return this.#runtimes.of(kind).open({ values: this.#values, ...options, ...parts });
  }

  #namespace(listing: NamespaceListing): Server {
    const approval = new NamespaceApproval(this.#services);
    const unknown = this.#openFound(listing, { approval, kind: undefined });
    const { log } = this.#options;
    const options = { listing, approval, find: this.#find };
    return new NamespaceServer(options, { unknown, opener: this, log });
  }

  /** Finds the definition and the approval of a server or of a name that no source lists. */
  #findServer(listing: ServerListing | MissingListing): FoundServer {
    // guard: disabled-unapproved
    if (listing.entry === "disabled") return { approval: DISABLED, kind: undefined };
    // guard: own-is-local
    if (listing.entry === undefined) {
      const server = this.#finders.get(listing.origin)?.find(listing);
      if (server !== undefined) return server;
    }
    for (const source of this.#unlistedSources()) {
      const server = this.#finders.get(source)?.findUnlisted?.(listing.name);
      if (server !== undefined) return server;
    }
    return { approval: new NameApproval(this.#services), kind: undefined };
  }

  #unlistedSources(): readonly ServerSource[] {
    return this.#options.directory.sources.filter(({ findsUnlisted }) => findsUnlisted);
  }

  /** Returns the sources whose finders a server needs. A listed server may be gone. */
  #sourcesOf(listing: DirectoryListing): readonly ServerSource[] {
    const origins = partsOf(listing).map(({ origin }) => origin);
    return [...new Set([...origins, ...this.#unlistedSources()])];
  }

  async #loadFinder(source: ServerSource): Promise<void> {
    if (this.#finders.has(source)) return;
    const loading = this.#loading.get(source) ?? this.#openFinder(source);
    this.#loading.set(source, loading);
    await loading;
  }

  async #openFinder(source: ServerSource): Promise<void> {
    try {
      this.#finders.set(source, await source.finder(this.#services));
    } finally {
      // The next server tries again after a failure.
      this.#loading.delete(source);
    }
  }

  /**
   * Returns the present server of a name on these connections, by its present definition. Throws if
   * it is not approved.
   */
  upstreamOf(name: string, upstreams: Upstreams): UpstreamServer {
    const listing = this.#options.directory.listingOf(name);
    const isConnected = listing.blocked() === undefined && !isSandboxed(listing) &&
      runtimesOf(listing).every((kind) => this.#runtimes.has(kind)) &&
      this.#sourcesOf(listing).every((source) => this.#finders.has(source));
    const server = isConnected ? this.#open(listing) : undefined;
    if (server instanceof McpServer && server.isReachedBy(upstreams)) return server.upstream();
    throw unknownTool(name, this.#options.servers);
  }
}

/** Returns whether a server runs in the sandbox, or has tools that do. */
function isSandboxed({ kind, entry }: DirectoryListing): boolean {
  return entry === "namespace" || kindNamed(kind)?.isSandboxed === true;
}

/** Returns the servers of an entry: its parts, if it is a namespace. */
function partsOf(listing: DirectoryListing): readonly ServerListing[] {
  if (listing.entry === undefined) return [listing];
  if (listing.entry !== "namespace") return [];
  const { base, actions } = listing.definition;
  return [...base === undefined ? [] : [base], ...actions.map((one) => one.listing)];
}

/**
 * Returns the kinds whose runtimes an entry needs. After a change of the configuration a name may
 * lead to another connection, which is then opened at once. A name of a registry, or one that no
 * source lists, may be one of the cloud.
 */
function runtimesOf(listing: DirectoryListing): readonly string[] {
  const parts = partsOf(listing);
  return parts.length === 0 ? CONNECTED : parts.flatMap(({ kind, origin }) => {
    const own = kindNamed(kind)?.isSandboxed ? [kind] : [];
    return own.length > 0 && !origin.isFetched ? own : [...own, ...CONNECTED];
  });
}
