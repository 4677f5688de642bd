/**
 * The servers that there are, by name: what ships with PML, what files define, what the person
 * approved of registries, and what nobody has here.
 *
 * @module
 */

import type { Redactor } from "../audit/redact.ts";
import { CAPABILITY } from "./capability/kind.ts";
import type { ServerDefinition } from "./kind.ts";
import { kindNamed } from "./kinds.ts";
import { MODULE } from "./module/kind.ts";
import type { Call, Outcome } from "../protocol/call.ts";
import type { Listing } from "./known_server.ts";
import { type ListItem, type ListName, unreadable } from "../protocol/lists.ts";
import type { Maybe } from "../core/maybe.ts";
import type { CheckedCall, ResolvedCall, Server } from "./server.ts";
import type { ServerIdentity, Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { toolId } from "../core/tool_id.ts";
import type { Policy } from "../policy/policy.ts";
import { WHOLE_SERVER } from "../search/catalog.ts";
import type { SavedNamespaces } from "./capability/capability_server.ts";
import type { RegistryServers } from "./registries/registry_servers.ts";
import { whyUntrusted } from "./workspace_code.ts";

/** What servers are gathered from. */
export interface DirectoryOptions {
  readonly policy: Policy;
  /** The names of the servers that ship with PML. */
  readonly builtins: ReadonlySet<string>;
  /** Returns the servers of registries, once something is known of them. */
  readonly registries: () => RegistryServers | undefined;
  /** Returns what the person saved, once it was loaded. */
  readonly capabilities?: () => SavedNamespaces | undefined;
  /** Opens what runs a server; loads its kind. */
  readonly open: (listing: Listing) => Promise<Server>;
  /** Takes keys out of errors: they may repeat what a server said that was given one. */
  readonly redactor: Pick<Redactor, "cleaned">;
}

/** What ships with PML is the same as long as PML runs. */
const SHIPPED = {};

/** Finds servers by their names; asks nobody and starts nothing. */
export class Directory {
  readonly #options: DirectoryOptions;
  #version = 0;
  #entries: ReadonlyMap<string, Entry> = new Map();
  /** Takes where servers are defined. */
  constructor(options: DirectoryOptions) {
    this.#options = options;
  }

  /** Returns the server of a name: one that fails each call where there is none. */
  at(name: string): Server {
    return this.#known().get(name) ?? new Entry(this.#missing(name), this.#options);
  }

  /** Returns every server that there is. */
  all(): readonly Server[] {
    return [...this.#known().values()];
  }

  #known(): ReadonlyMap<string, Entry> {
    const { version } = this.#options.policy.now;
    if (version === this.#version) return this.#entries;
    this.#version = version;
    const before = this.#entries;
    this.#entries = new Map(
      this.#listings().map((listing) => {
        const known = before.get(listing.name);
        return [listing.name, known?.is(listing) ? known : new Entry(listing, this.#options)];
      }),
    );
    return this.#entries;
  }

  #listings(): readonly Listing[] {
    const { policy, builtins, registries } = this.#options;
    const { config: { servers, narrowing }, loaded: { file }, judge } = policy.now;
    const taken = new Set(servers.map(({ name }) => name));
    const shipped = [...builtins].filter((name) => !taken.has(name));
    for (const name of shipped) taken.add(name);
    const known = registries();
    const found = known?.servers() ?? [];
    // A server's name stands for the server alone.
    const saved = [...this.#options.capabilities?.()?.namespaces ?? []]
      .filter(([name]) => !taken.has(name) && !found.includes(name));
    for (const [name] of saved) taken.add(name);
    // An untrusted file cannot hide a built-in, or what is the person's, behind its name.
    const waiting = (file?.servers ?? [])
      .filter(({ name }) => !taken.has(name) && policy.forbidden(name) === undefined);
    const listed = [
      ...shipped.map((name) => listing({ name, kind: MODULE.name, origin: "builtin" }, SHIPPED)),
      ...saved.map(([name, all]) =>
        listing({ name, kind: CAPABILITY.name, origin: "private" }, all)
      ),
      ...found.map((name) => {
        const manifest = known?.manifestOf(name);
        const kind = manifest?.kind ?? MODULE.name;
        const own = listing({ name, kind, origin: "registry" }, manifest);
        return { ...own, blocked: () => known?.blocked(name) };
      }),
      ...[...servers, ...waiting].map((own) => this.#ownListing(own)),
    ];
    // A server of which an identity can use nothing is not there for it.
    // guard: server-of-nothing
    return (known?.withActions(listed) ?? listed).filter(({ name }) =>
      narrowing?.identity === undefined || judge(toolId(name, WHOLE_SERVER)).kind !== "deny"
    );
  }

  #ownListing(own: ServerDefinition): Listing {
    const { name, title, kind, settings } = own;
    const { policy } = this.#options;
    return {
      ...listing({ name, kind, origin: "private" }, own),
      title,
      settings,
      blocked: () => policy.blocked(name) ?? whyUntrusted(own, policy),
    };
  }

  #missing(name: string): Listing {
    const off = this.#options.policy.disabledIn(name);
    // guard: disabled
    return listing({ name, kind: off === undefined ? "unknown" : "disabled", origin: "registry" });
  }
}

function listing(
  from: Pick<Listing, "name" | "kind" | "origin">,
  definition?: object,
): Listing {
  const { notifies = true, checksArguments = true } = kindNamed(from.kind) ?? {};
  return {
    ...from,
    title: undefined,
    definition,
    tells: notifies,
    checksArguments,
    blocked: () => undefined,
  };
}

/** It has what its listing says. */
interface Entry extends Listing {}

/** A server of the directory: what it is is known, and what runs it is opened when it is needed. */
class Entry implements Server {
  readonly #options: DirectoryOptions;
  #opening: Promise<Server> | undefined;
  #server: Server | undefined;

  constructor(listing: Listing, options: DirectoryOptions) {
    this.#options = options;
    Object.assign(this, listing);
  }

  /** Tells whether this is what a listing lists. */
  is({ definition, origin, kind }: Listing): boolean {
    return definition !== undefined && definition === this.definition && origin === this.origin &&
      kind === this.kind;
  }

  identity(): Promise<ServerIdentity | undefined> {
    return this.#by((server) => server.identity());
  }

  unapproved(call: ResolvedCall): Maybe<Unapproved | undefined> {
    if (this.#server === undefined) return this.#by((server) => server.unapproved(call));
    return this.#now(this.#server, (server) => server.unapproved(call));
  }

  definitionFor(call: Call): Maybe<ToolDefinition> {
    if (this.#server === undefined) return this.#by((server) => server.definitionFor(call));
    return this.#now(this.#server, (server) => server.definitionFor(call));
  }

  wrongArguments(...of: Parameters<NonNullable<Server["wrongArguments"]>>) {
    if (this.checksArguments) return undefined;
    return this.#by(async (server) => await server.wrongArguments?.(...of));
  }

  consentLines(call: Pick<Call, "id" | "method">): Promise<readonly string[]> {
    return this.#by((server) => server.consentLines(call));
  }

  permissionLines(tool: string): Promise<readonly string[]> {
    return this.#by((server) => server.permissionLines(tool));
  }

  onlyReads(tool: string): Promise<boolean | undefined> {
    return this.#by((server) => server.onlyReads(tool));
  }

  remark(tool: string): Promise<string | undefined> {
    return this.#by((server) => server.remark(tool));
  }

  list(list: ListName): Promise<readonly ListItem[]> {
    return this.#by((server) => {
      const why = this.blocked();
      // guard: list-approved
      if (why === undefined) return server.list(list);
      throw unreadable(list, { server: this.name, why });
    });
  }

  hasList(list: ListName): Promise<boolean> {
    return this.#by(async (server) => await server.hasList?.(list) ?? true);
  }

  earlierList(list: ListName): Promise<readonly ListItem[] | undefined> {
    return this.#by(async (server) => {
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
    return this.#by(async (server) => await server.approvedDefinitions?.(tools) ?? new Map());
  }

  /** Runs a call. The pipeline removes secrets from its error. */
  call(call: CheckedCall): Promise<Outcome> {
    return this.#server?.call(call) ?? this.#opened().then((server) => server.call(call));
  }

  forget(lists?: readonly ListName[]): void {
    this.#opened().then((server) => server.forget(lists), () => {});
  }

  /** Uses an open server, without a promise if it needs none. */
  #now<T>(server: Server, act: (server: Server) => Maybe<T>): Maybe<T> {
    try {
      const result = act(server);
      return result instanceof Promise ? result.catch(this.#cleaned) : result;
    } catch (error) {
      return this.#cleaned(error);
    }
  }

  readonly #cleaned = (error: unknown): never => {
    throw this.#options.redactor.cleaned(error);
  };

  async #by<T>(act: (server: Server) => Maybe<T>): Promise<T> {
    try {
      return await act(this.#server = await this.#opened());
    } catch (error) {
      throw this.#options.redactor.cleaned(error);
    }
  }

  #opened(): Promise<Server> {
    // What failed, for a broken lock, may be mended.
    this.#opening ??= this.#options.open(this).catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }
}
