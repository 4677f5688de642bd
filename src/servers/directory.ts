/**
 * The servers by name: built-ins, servers of files, approved servers of registries, and unknown
 * names.
 *
 * @module
 */

import type { Redactor } from "../audit/redact.ts";
import type { Call, Outcome } from "../protocol/call.ts";
import type { Listing } from "./known_server.ts";
import { type ListItem, type ListName, unreadable } from "../protocol/lists.ts";
import type { Maybe } from "../core/maybe.ts";
import type { CheckedCall, Origin, ResolvedCall, Server } from "./server.ts";
import type { ServerIdentity, Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId, type ToolId, toolId } from "../core/tool_id.ts";
import { WHOLE_SERVER } from "../search/catalog.ts";
import { listingOf } from "./listing.ts";
import type {
  DirectoryListing,
  MissingListing,
  ServerListing,
  ServerOpening,
  ServerSource,
  SourceHost,
} from "./source.ts";
import { SOURCES } from "./sources.ts";
import { NamespaceParts } from "./namespace_parts.ts";

/** The collaborators of the directory. */
export interface DirectoryHost extends SourceHost {
  /** Loads the opener of servers. */
  serverOpening(): Promise<Pick<ServerOpening, "open">>;
}

/** The origin of a name that no source lists. */
const NOWHERE: Origin = { name: "none", isShipped: false, isFetched: false };

/** Finds servers by their names. Sends no request and starts nothing. */
export class Directory {
  /** The sources of servers, in the order of precedence. */
  readonly sources: readonly ServerSource[];
  readonly #host: DirectoryHost;
  readonly #redactor: Pick<Redactor, "cleaned">;
  readonly #namespaces = new NamespaceParts();
  #version = 0;
  #entries: ReadonlyMap<string, LazyServer> = new Map();

  /** Takes the facts about servers. The redactor removes keys from errors, which may repeat them. */
  constructor(host: DirectoryHost, redactor: Pick<Redactor, "cleaned">) {
    this.#host = host;
    this.#redactor = redactor;
    this.sources = SOURCES.map((Source) => new Source(host));
  }

  /** Returns the server of a name. For an unknown name, its calls fail. */
  at(name: string): Server {
    return this.#entry(name);
  }

  /** Returns the listing of a name: the same object as long as its server is the same. */
  listingOf(name: string): DirectoryListing {
    return this.#entry(name).listing;
  }

  /** Returns whether PML derives that a tool only reads. */
  isReader(id: ToolId): boolean {
    const { server, tool } = splitToolId(id);
    return this.#entry(server).isReader(tool);
  }

  /** Returns whether there is a server of this name. */
  has(name: string): boolean {
    return this.#lazyServers().has(name);
  }

  /** Returns whether there is a server of this name, or a file disables one. */
  isTaken(name: string): boolean {
    return this.has(name) || this.#host.policy.disabledIn(name) !== undefined;
  }

  /** Returns every server. */
  all(): readonly Server[] {
    return [...this.#lazyServers().values()];
  }

  #entry(name: string): LazyServer {
    return this.#lazyServers().get(name) ?? this.#newEntry(this.#missing(name));
  }

  #lazyServers(): ReadonlyMap<string, LazyServer> {
    const { version } = this.#host.policy.now;
    if (version === this.#version) return this.#entries;
    this.#version = version;
    const before = this.#entries;
    this.#entries = new Map(
      this.#listings().map((listing) => {
        const server = before.get(listing.name);
        return [listing.name, server?.is(listing) ? server : this.#newEntry(listing)];
      }),
    );
    return this.#entries;
  }

  #newEntry(listing: DirectoryListing): LazyServer {
    return new LazyServer(listing, this.#host, this.#redactor);
  }

  #listings(): readonly DirectoryListing[] {
    const { config: { narrowing }, judge } = this.#host.policy.now;
    const listed = new Map<string, ServerListing>();
    for (const listing of this.sources.flatMap((source) => source.list())) {
      // guard: source-order
      if (listed.has(listing.name)) continue;
      listed.set(listing.name, listing);
    }
    const actions = this.sources.flatMap((source) => source.actions?.() ?? []);
    // A server whose tools are all denied to an identity is hidden from it.
    // guard: server-of-nothing
    return this.#namespaces.with([...listed.values()], actions).filter(({ name }) =>
      narrowing?.identity === undefined || judge(toolId(name, WHOLE_SERVER)).kind !== "deny"
    );
  }

  #missing(name: string): DirectoryListing {
    // guard: disabled
    if (this.#host.policy.disabledIn(name) !== undefined) return missing(name, "disabled");
    return missing(name, "unknown");
  }
}

function missing(name: string, entry: MissingListing["entry"]): MissingListing {
  return { ...listingOf(NOWHERE, { name, kind: entry, definition: undefined }), entry };
}

/** It has the members of its listing. */
interface LazyServer extends Listing {}

/** A server of the directory. Its listing is known, and its runtime is opened by the first use. */
class LazyServer implements Server {
  readonly listing: DirectoryListing;
  readonly #host: DirectoryHost;
  readonly #redactor: Pick<Redactor, "cleaned">;
  #opening: Promise<Server> | undefined;
  #server: Server | undefined;

  constructor(
    listing: DirectoryListing,
    host: DirectoryHost,
    redactor: Pick<Redactor, "cleaned">,
  ) {
    this.listing = listing;
    this.#host = host;
    this.#redactor = redactor;
    Object.assign(this, listing);
  }

  /** Returns whether this is the server of a listing. */
  is({ definition, origin, kind }: Listing): boolean {
    return definition !== undefined && definition === this.definition && origin === this.origin &&
      kind === this.kind;
  }

  identity(): Promise<ServerIdentity | undefined> {
    return this.#openAndUse((server) => server.identity());
  }

  unapproved(call: ResolvedCall): Maybe<Unapproved | undefined> {
    if (this.#server === undefined) return this.#openAndUse((server) => server.unapproved(call));
    return this.#useOpen(this.#server, (server) => server.unapproved(call));
  }

  definitionFor(call: Call): Maybe<ToolDefinition> {
    if (this.#server === undefined) return this.#openAndUse((server) => server.definitionFor(call));
    return this.#useOpen(this.#server, (server) => server.definitionFor(call));
  }

  wrongArguments(...of: Parameters<NonNullable<Server["wrongArguments"]>>) {
    if (this.checksItself) return undefined;
    return this.#openAndUse(async (server) => await server.wrongArguments?.(...of));
  }

  consentLines(call: Pick<Call, "id" | "method">): Promise<readonly string[]> {
    return this.#openAndUse((server) => server.consentLines(call));
  }

  permissionLines(tool: string): Promise<readonly string[]> {
    return this.#openAndUse((server) => server.permissionLines(tool));
  }

  onlyReads(tool: string): Promise<boolean | undefined> {
    return this.#openAndUse((server) => server.onlyReads(tool));
  }

  isReader(tool: string): boolean {
    return this.blocked() === undefined && this.#server?.isReader?.(tool) === true;
  }

  remark(tool: string): Promise<string | undefined> {
    return this.#openAndUse((server) => server.remark(tool));
  }

  list(list: ListName): Promise<readonly ListItem[]> {
    return this.#openAndUse((server) => {
      const why = this.blocked();
      // guard: list-approved
      if (why === undefined) return server.list(list);
      throw unreadable(list, { server: this.name, why });
    });
  }

  hasList(list: ListName): Promise<boolean> {
    return this.#openAndUse(async (server) => await server.hasList?.(list) ?? true);
  }

  earlierList(list: ListName): Promise<readonly ListItem[] | undefined> {
    return this.#openAndUse(async (server) => {
      // guard: earlier-approved
      if (this.blocked() !== undefined) return undefined;
      return await server.earlierList?.(list);
    });
  }

  extensions(): readonly string[] {
    return this.#server?.extensions?.() ?? [];
  }

  approvedDefinitions(
    tools: readonly ToolDefinition[],
  ): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
    return this.#openAndUse(async (server) =>
      await server.approvedDefinitions?.(tools) ?? new Map()
    );
  }

  /** Runs a call. The pipeline removes secrets from its error. */
  call(call: CheckedCall): Promise<Outcome> {
    return this.#server?.call(call) ?? this.#openOnce().then((server) => server.call(call));
  }

  forget(lists?: readonly ListName[]): void {
    this.#openOnce().then((server) => server.forget(lists), () => {});
  }

  /** Uses an open server, without a promise if it needs none. */
  #useOpen<T>(server: Server, act: (server: Server) => Maybe<T>): Maybe<T> {
    try {
      const result = act(server);
      return result instanceof Promise ? result.catch(this.#cleaned) : result;
    } catch (error) {
      return this.#cleaned(error);
    }
  }

  readonly #cleaned = (error: unknown): never => {
    throw this.#redactor.cleaned(error);
  };

  async #openAndUse<T>(act: (server: Server) => Maybe<T>): Promise<T> {
    try {
      return await act(this.#server = await this.#openOnce());
    } catch (error) {
      throw this.#redactor.cleaned(error);
    }
  }

  #openOnce(): Promise<Server> {
    // The cause of a failure, such as a broken lock, may be repaired.
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<Server> {
    return await (await this.#host.serverOpening()).open(this.listing);
  }
}
