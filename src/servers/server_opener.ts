/**
 * Opens the servers that the directory lists. The source of a server finds its definition and its
 * approval, and the runtime of its kind opens it.
 *
 * @module
 */

import type { FoundServer } from "./host.ts";
import type { FindTool, Listing } from "./known_server.ts";
import type { Server } from "./server.ts";
import { unknownTool } from "./lists/unknown_tool.ts";
import { McpServer } from "./client/mcp_server.ts";
import type { UpstreamServer } from "./client/wire.ts";
import type { Upstreams } from "./client/upstreams.ts";
import { findKind, KINDS } from "./kinds.ts";
import { Runtimes } from "./runtimes.ts";
import type {
  DirectoryListing,
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
import { ServerServices, SignInServers } from "./server_services.ts";
import type { ServiceParts } from "./service_parts.ts";
import { UnknownServer } from "./unknown_server.ts";

/** The kinds whose servers do not run in the sandbox, such as programs, addresses and the cloud. */
const CONNECTED = KINDS.filter(({ isSandboxed }) => !isSandboxed).map(({ name }) => name);

/** The approval for disabled names, whose calls fail without an approval request. */
const DISABLED = new NothingToApprove("a server that a file disables");

/** Opens servers of every kind. Starts nothing before the first call. */
export class ServerOpener implements ServerOpening {
  /** Runs and reaches the servers. */
  readonly machine: Machine;
  /** Signs the user in at servers. */
  readonly logins: Logins;
  readonly #services: ServerServices;
  readonly #parts: ServiceParts;
  readonly #find: FindTool;
  readonly #servers = new WeakMap<Listing, Server>();
  readonly #values: DefinitionValues;
  readonly #runtimes: Runtimes;
  readonly #finders = new Map<ServerSource, SourceFinder>();
  readonly #loading = new Map<ServerSource, Promise<void>>();

  /** Opens nothing yet. */
  constructor(parts: ServiceParts) {
    const { policy, servers } = parts;
    this.#parts = parts;
    this.#values = new DefinitionValues(parts);
    this.#find = (id) => servers.definition(id);
    this.machine = new Machine(parts, this, this.#values);
    const signIns = new SignInServers(this, this.machine, parts);
    this.logins = new Logins(policy.now.config.home, signIns, this.machine.closing);
    this.#services = new ServerServices(parts, this.machine, this.logins);
    this.#runtimes = new Runtimes(this.#services);
  }

  /** Opens a server. Returns the same object for the same listing. */
  async open(listing: DirectoryListing): Promise<Server> {
    if (!listing.origin.isShipped) await this.#parts.keys.waitForOutside();
    // The pin of a name decides whether the name may be sent to the cloud.
    // guard: pinned-read
    if (listing.definition === undefined) await this.#parts.pins.state();
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

  #openFound(listing: Listing, found: FoundServer): Server {
    const { approval, kind, values = this.#values } = found;
    const options = { listing, approval, find: this.#find };
    if (kind === undefined) return new UnknownServer(options, this.#parts.servers);
    return this.#runtimes.of(kind).open(options, found, values);
  }

  #namespace(listing: NamespaceListing): Server {
    const approval = new NamespaceApproval(this.#services);
    const unknown = this.#openFound(listing, { approval, kind: undefined });
    const { log } = this.#parts;
    const options = { listing, approval, find: this.#find };
    return new NamespaceServer(options, { unknown, opener: this, log });
  }

  /** Finds the definition and the approval of a server, or of a name that no source lists. */
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
    return this.#parts.directory.sources.filter(({ findsUnlisted }) => findsUnlisted);
  }

  /**
   * Returns the sources whose finders a server needs: its source, and the sources that find
   * unlisted names, because its source may no longer have the server.
   */
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
   * Returns the server that has this name now, with its current definition, if it uses these
   * connections (`upstreams`). Throws if the server is not approved or not opened yet.
   */
  upstreamOf(name: string, upstreams: Upstreams): UpstreamServer {
    const listing = this.#parts.directory.listingOf(name);
    const isConnected = listing.whyBlocked() === undefined && !isSandboxed(listing) &&
      runtimesOf(listing).every((kind) => this.#runtimes.has(kind)) &&
      this.#sourcesOf(listing).every((source) => this.#finders.has(source));
    const server = isConnected ? this.#open(listing) : undefined;
    if (server instanceof McpServer && server.isReachedBy(upstreams)) return server.upstream();
    throw unknownTool(name, this.#parts.servers);
  }
}

/** Returns whether a server, or a part of a namespace, runs in the sandbox. */
function isSandboxed({ kind, entry }: DirectoryListing): boolean {
  return entry === "namespace" || findKind(kind)?.isSandboxed === true;
}

/** Returns the servers of an entry: the parts of a namespace, or the server itself. */
function partsOf(listing: DirectoryListing): readonly ServerListing[] {
  if (listing.entry === undefined) return [listing];
  if (listing.entry !== "namespace") return [];
  const { base, actions } = listing.definition;
  return [...base === undefined ? [] : [base], ...actions.map(({ listing }) => listing)];
}

/**
 * Returns the kinds whose runtimes an entry needs. For a server outside the sandbox, these are all
 * kinds with connections: after a change of the configuration, the name may belong to another of
 * these kinds, and then the server must open without waiting. The same is true of a name of a
 * registry, and of a name that no source lists, because they may belong to the cloud.
 */
function runtimesOf(listing: DirectoryListing): readonly string[] {
  const parts = partsOf(listing);
  return parts.length === 0 ? CONNECTED : parts.flatMap(({ kind, origin }) => {
    const sandboxed = findKind(kind)?.isSandboxed ? [kind] : [];
    return sandboxed.length > 0 && !origin.isFetched ? sandboxed : [...sandboxed, ...CONNECTED];
  });
}
