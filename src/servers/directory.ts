/**
 * Finds servers by name, in the lists of all sources. For an unknown name, returns a server whose
 * calls fail or look the name up.
 *
 * @module
 */

import type { Redactor } from "../audit/redact.ts";
import type { Call, Outcome } from "../protocol/call.ts";
import type { Listing } from "./known_server.ts";
import { type ListItem, type ListName, unreadableError } from "../protocol/lists.ts";
import type { PmlError } from "../core/errors.ts";
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
  readonly #redactor: Pick<Redactor, "cleanError">;
  readonly #namespaces = new NamespaceParts();
  #version = 0;
  #entries: ReadonlyMap<string, LazyServer> = new Map();

  /** The redactor removes keys from the errors of servers. */
  constructor(host: DirectoryHost, redactor: Pick<Redactor, "cleanError">) {
    this.#host = host;
    this.#redactor = redactor;
    this.sources = SOURCES.map((Source) => new Source(host));
  }

  /** Returns the server of a name, also for an unknown name. */
  get(name: string): Server {
    return this.#entry(name);
  }

  /** Returns the listing of a name: the same object until the server changes. */
  listingOf(name: string): DirectoryListing {
    return this.#entry(name).listing;
  }

  /** Returns whether the known permissions of a tool prove that it only reads. */
  isReader(id: ToolId): boolean {
    const { server, tool } = splitToolId(id);
    return this.#entry(server).isReader(tool);
  }

  /** Returns whether there is a server of this name. */
  has(name: string): boolean {
    return this.#lazyServers().has(name);
  }

  /** Returns whether there is a server of this name, or a file disables the name. */
  isTaken(name: string): boolean {
    return this.has(name) || this.#host.policy.fileThatDisables(name) !== undefined;
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
    const { config: { restrictions }, judge } = this.#host.policy.now;
    const listed = new Map<string, ServerListing>();
    for (const listing of this.sources.flatMap((source) => source.list())) {
      // guard: source-order
      if (listed.has(listing.name)) continue;
      listed.set(listing.name, listing);
    }
    const actions = this.sources.flatMap((source) => source.actions?.() ?? []);
    // If the rules deny all tools of a server to an identity, the identity does not see the server.
    // guard: server-of-nothing
    return this.#namespaces.with([...listed.values()], actions).filter(({ name }) =>
      restrictions?.identity === undefined || judge(toolId(name, WHOLE_SERVER)).kind !== "deny"
    );
  }

  #missing(name: string): DirectoryListing {
    // guard: disabled
    if (this.#host.policy.fileThatDisables(name) !== undefined) return missing(name, "disabled");
    return missing(name, "unknown");
  }
}

function missing(name: string, entry: MissingListing["entry"]): MissingListing {
  return { ...listingOf(NOWHERE, { name, kind: entry, definition: undefined }), entry };
}

/** A `LazyServer` has the members of its listing. */
interface LazyServer extends Listing {}

/** A server of the directory. Its listing is known; the first use opens the server itself. */
class LazyServer implements Server {
  readonly listing: DirectoryListing;
  readonly #host: DirectoryHost;
  readonly #redactor: Pick<Redactor, "cleanError">;
  #opening: Promise<Server> | undefined;
  #server: Server | undefined;

  constructor(
    listing: DirectoryListing,
    host: DirectoryHost,
    redactor: Pick<Redactor, "cleanError">,
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

  findUnapproved(call: ResolvedCall): Maybe<Unapproved | undefined> {
    if (this.#server === undefined) {
      return this.#openAndUse((server) => server.findUnapproved(call));
    }
    return this.#useOpen(this.#server, (server) => server.findUnapproved(call));
  }

  definitionFor(call: Call): Maybe<ToolDefinition> {
    if (this.#server === undefined) return this.#openAndUse((server) => server.definitionFor(call));
    return this.#useOpen(this.#server, (server) => server.definitionFor(call));
  }

  findWrongArguments(...args: Parameters<NonNullable<Server["findWrongArguments"]>>) {
    if (this.checksItself) return undefined;
    return this.#openAndUse(async (server) => await server.findWrongArguments?.(...args));
  }

  whyRefused(call: Pick<Call, "id" | "method" | "arguments">): Promise<PmlError | undefined> {
    return this.#openAndUse(async (server) => await server.whyRefused?.(call));
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
    return this.whyBlocked() === undefined && this.#server?.isReader?.(tool) === true;
  }

  remarkOn(tool: string): Promise<string | undefined> {
    return this.#openAndUse((server) => server.remarkOn(tool));
  }

  list(list: ListName): Promise<readonly ListItem[]> {
    return this.#openAndUse((server) => {
      const why = this.whyBlocked();
      // guard: list-approved
      if (why === undefined) return server.list(list);
      throw unreadableError(list, { server: this.name, why });
    });
  }

  hasList(list: ListName): Promise<boolean> {
    return this.#openAndUse(async (server) => await server.hasList?.(list) ?? true);
  }

  readEarlierList(list: ListName): Promise<readonly ListItem[] | undefined> {
    return this.#openAndUse(async (server) => {
      // guard: earlier-approved
      if (this.whyBlocked() !== undefined) return undefined;
      return await server.readEarlierList?.(list);
    });
  }

  lateStartError(): Promise<PmlError | undefined> {
    return this.#openAndUse(async (server) => await server.lateStartError?.());
  }

  unreachedError(): Promise<PmlError | undefined> {
    return this.#openAndUse(async (server) => await server.unreachedError?.());
  }

  forgetLateStart(): void {
    this.#openOnce().then((server) => server.forgetLateStart?.(), () => {});
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

  /** Runs a call. The call pipeline removes secrets from errors. */
  call(call: CheckedCall): Promise<Outcome> {
    return this.#server?.call(call) ?? this.#openOnce().then((server) => server.call(call));
  }

  forget(lists?: readonly ListName[]): void {
    this.#openOnce().then((server) => server.forget(lists), () => {});
  }

  /** Uses an open server. Returns a promise only if `act` returns a promise. */
  #useOpen<T>(server: Server, act: (server: Server) => Maybe<T>): Maybe<T> {
    try {
      const result = act(server);
      return result instanceof Promise ? result.catch(this.#throwCleaned) : result;
    } catch (error) {
      return this.#throwCleaned(error);
    }
  }

  readonly #throwCleaned = (error: unknown): never => {
    throw this.#redactor.cleanError(error);
  };

  async #openAndUse<T>(act: (server: Server) => Maybe<T>): Promise<T> {
    try {
      return await act(this.#server = await this.#openOnce());
    } catch (error) {
      throw this.#redactor.cleanError(error);
    }
  }

  #openOnce(): Promise<Server> {
    // After a failure, the next use tries again: the user may repair the cause, such as a broken
    // lock.
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
