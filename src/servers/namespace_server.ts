/**
 * A name with several parts: capabilities of registries, each approved by itself, and next to them
 * a server of this name, or saved capabilities of the user.
 *
 * @module
 */

import type { Log } from "../audit/log.ts";
import type { Call, Outcome } from "../protocol/call.ts";
import { KnownServer, type KnownServerOptions } from "./known_server.ts";
import type { ListItem, ListName } from "../protocol/lists.ts";
import type { CheckedCall, ResolvedCall, Server } from "./server.ts";
import type { ServerIdentity, Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId } from "../core/tool_id.ts";
import { kindNamed } from "./kinds.ts";
import type { NamespaceDefinition, NamespaceListing, ServerOpening } from "./source.ts";

/** Passes each request on to the part that it is for. */
export class NamespaceServer extends KnownServer {
  readonly #definition: NamespaceDefinition;
  readonly #opener: Pick<ServerOpening, "openPart">;
  readonly #unknown: Server;
  readonly #log: Pick<Log, "info">;
  readonly #reported = new Set<string>();

  /** Opens nothing yet. `unknown` is the server of names that no part has. */
  constructor(
    options: KnownServerOptions & { readonly listing: NamespaceListing },
    { opener, unknown, log }: {
      readonly opener: Pick<ServerOpening, "openPart">;
      readonly unknown: Server;
      readonly log: Pick<Log, "info">;
    },
  ) {
    super(options);
    this.#definition = options.listing.definition;
    this.#opener = opener;
    this.#unknown = unknown;
    this.#log = log;
  }

  /** Returns the identity of the server of this name. */
  override async identity(): Promise<ServerIdentity | undefined> {
    return await this.#base?.identity();
  }

  /** Returns an approval request for the part of a call; undefined if it is approved. */
  override async unapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    return await (await this.#for(call)).unapproved(call);
  }

  /** Returns the definition of a tool of a part. */
  override async definitionFor(call: Call): Promise<ToolDefinition> {
    return await (await this.#for(call)).definitionFor(call);
  }

  /** Returns why arguments do not match the schema of a tool of a part. */
  async wrongArguments(
    ...[call, definition]: Parameters<NonNullable<Server["wrongArguments"]>>
  ): Promise<string | undefined> {
    return await (await this.#for(call)).wrongArguments?.(call, definition);
  }

  /** Returns the lines that the user sees before a call. */
  override async consentLines(
    call: Pick<Call, "id" | "method">,
  ): Promise<readonly string[]> {
    return await (await this.#for(call)).consentLines(call);
  }

  /** Returns lines with the permissions of a tool. */
  override async permissionLines(tool: string): Promise<readonly string[]> {
    return await (await this.#of(tool)).permissionLines(tool);
  }

  /** Returns whether a tool can neither write nor use the network or programs. */
  override async onlyReads(tool: string): Promise<boolean | undefined> {
    return await (await this.#of(tool)).onlyReads(tool);
  }

  /** Returns a short remark about a tool. */
  override async remark(tool: string): Promise<string | undefined> {
    return await (await this.#of(tool)).remark(tool);
  }

  /** Returns the items of all parts that may run. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    const { base, actions } = this.#definition;
    const own = base?.blocked() === undefined ? await this.#base?.list(list) ?? [] : [];
    if (list !== "tools") return own;
    const names = new Set(own.map(({ name }) => name));
    const more = await Promise.all(actions.map(async ({ action, listing }) => {
      if (names.has(action)) this.#tell(action);
      if (names.has(action) || listing.blocked() !== undefined) return [];
      const all = await this.#opener.openPart(listing).list(list).catch(() => []);
      // The module of one entry is not used for another entry.
      // guard: registry-action
      return all.filter(({ name }) => name === action);
    }));
    return [...own, ...more.flat()];
  }

  /** Returns whether a list of the server of this name is cached. Registries are not asked. */
  async hasList(list: ListName): Promise<boolean> {
    const base = this.#base;
    return base?.hasList === undefined || base.blocked() !== undefined || await base.hasList(list);
  }

  /** Returns the definitions to show for changed tools of the server of this name. */
  override async approvedDefinitions(
    tools: readonly ToolDefinition[],
  ): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
    const base = this.#base;
    if (base?.approvedDefinitions === undefined || base.blocked() !== undefined) return new Map();
    const own = new Set<unknown>(await base.list("tools"));
    return await base.approvedDefinitions(tools.filter((tool) => own.has(tool)));
  }

  /** Runs a call. */
  override async call(call: CheckedCall): Promise<Outcome> {
    return await (await this.#for(call)).call(call);
  }

  /** Clears the lists of the server of this name. */
  override forget(lists?: readonly ListName[]): void {
    this.#base?.forget(lists);
  }

  #tell(action: string): void {
    if (this.#reported.has(action)) return;
    this.#reported.add(action);
    const { base } = this.#definition;
    const what = base && kindNamed(base.kind)?.isSaved ? "what you saved" : "the server's own tool";
    this.#log.info(`"${this.name}:${action}" is ${what}, and no capability of a registry`);
  }

  get #base(): Server | undefined {
    const { base } = this.#definition;
    return base && this.#opener.openPart(base);
  }

  async #for({ id, method }: Pick<Call, "id" | "method">): Promise<Server> {
    return method === undefined
      ? await this.#of(splitToolId(id).tool)
      : this.#base ?? this.#unknown;
  }

  async #of(tool: string): Promise<Server> {
    const { base, actions } = this.#definition;
    const [opener, unknown] = [this.#opener, this.#unknown];
    const action = actions.find((each) => each.action === tool);
    if (base === undefined) return action === undefined ? unknown : opener.openPart(action.listing);
    const server = opener.openPart(base);
    if (action === undefined) return server;
    // A server that has the tool wins. A blocked server has no tools.
    const own = base.blocked() === undefined ? await server.list("tools").catch(() => []) : [];
    return own.some(({ name }) => name === tool) ? server : opener.openPart(action.listing);
  }
}
