/**
 * The server for a namespace. Its parts are capabilities of registries, each with its own approval,
 * and its base: the server of the same name, or the capabilities that the user saved, if any.
 *
 * @module
 */

import type { Log } from "../audit/log.ts";
import type { Call, Outcome } from "../protocol/call.ts";
import type { PmlError } from "../core/errors.ts";
import { KnownServer, type KnownServerOptions } from "./known_server.ts";
import type { ListItem, ListName } from "../protocol/lists.ts";
import type { CheckedCall, ResolvedCall, Server } from "./server.ts";
import type { ServerIdentity, Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId } from "../core/tool_id.ts";
import { findKind } from "./kinds.ts";
import type { NamespaceDefinition, NamespaceListing, ServerOpening } from "./source.ts";

/** Passes each request on to the part that has the tool. */
export class NamespaceServer extends KnownServer {
  readonly #definition: NamespaceDefinition;
  readonly #opener: Pick<ServerOpening, "openPart">;
  readonly #unknown: Server;
  readonly #log: Pick<Log, "info">;
  readonly #reported = new Set<string>();

  /** Opens nothing yet. `unknown` handles tools that no part has. */
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

  /** Returns the identity of the base. */
  override async identity(): Promise<ServerIdentity | undefined> {
    return await this.#base?.identity();
  }

  /**
   * Returns an approval request for the part that runs a call; undefined if the part is approved.
   */
  override async findUnapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    return await (await this.#partFor(call)).findUnapproved(call);
  }

  /** Returns the definition of a tool of a part. */
  override async definitionFor(call: Call): Promise<ToolDefinition> {
    return await (await this.#partFor(call)).definitionFor(call);
  }

  /** Returns why arguments do not match the schema of a tool of a part. */
  async findWrongArguments(
    ...[call, definition]: Parameters<NonNullable<Server["findWrongArguments"]>>
  ): Promise<string | undefined> {
    return await (await this.#partFor(call)).findWrongArguments?.(call, definition);
  }

  /** Returns the lines that the user sees before a call. */
  override async consentLines(
    call: Pick<Call, "id" | "method">,
  ): Promise<readonly string[]> {
    return await (await this.#partFor(call)).consentLines(call);
  }

  /** Returns lines with the permissions of a tool. */
  override async permissionLines(tool: string): Promise<readonly string[]> {
    return await (await this.#partWith(tool)).permissionLines(tool);
  }

  /** Returns whether a tool can neither write nor use the network or programs. */
  override async onlyReads(tool: string): Promise<boolean | undefined> {
    return await (await this.#partWith(tool)).onlyReads(tool);
  }

  /** Returns a short remark about a tool. */
  override async remarkOn(tool: string): Promise<string | undefined> {
    return await (await this.#partWith(tool)).remarkOn(tool);
  }

  /** Returns the items of all parts that may run. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    const { base, actions } = this.#definition;
    const own = base?.whyBlocked() === undefined ? await this.#base?.list(list) ?? [] : [];
    if (list !== "tools") return own;
    const names = new Set(own.map(({ name }) => name));
    const more = await Promise.all(actions.map(async ({ action, listing }) => {
      if (names.has(action)) this.#reportHidden(action);
      if (names.has(action) || listing.whyBlocked() !== undefined) return [];
      const all = await this.#opener.openPart(listing).list(list).catch(() => []);
      // The module of a capability may have further tools. Each needs its own registry entry.
      // guard: registry-action
      return all.filter(({ name }) => name === action);
    }));
    return [...own, ...more.flat()];
  }

  /** Returns whether a list of the base is available without starting it. Ignores other parts. */
  async hasList(list: ListName): Promise<boolean> {
    const base = this.#base;
    return base?.hasList === undefined || base.whyBlocked() !== undefined ||
      await base.hasList(list);
  }

  /** Returns the error of a late start of the base. */
  async lateStartError(): Promise<PmlError | undefined> {
    return await this.#base?.lateStartError?.();
  }

  /** Returns the error of a base that could not be reached a short time ago. */
  async unreachedError(): Promise<PmlError | undefined> {
    return await this.#base?.unreachedError?.();
  }

  /** Forgets that a start of the base took too long. */
  forgetLateStart(): void {
    this.#base?.forgetLateStart?.();
  }

  /** Maps changed tools of the base to their approved definitions. */
  override async approvedDefinitions(
    tools: readonly ToolDefinition[],
  ): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
    const base = this.#base;
    if (base?.approvedDefinitions === undefined || base.whyBlocked() !== undefined) {
      return new Map();
    }
    const own = new Set<unknown>(await base.list("tools"));
    return await base.approvedDefinitions(tools.filter((tool) => own.has(tool)));
  }

  /** Runs a call. */
  override async call(call: CheckedCall): Promise<Outcome> {
    return await (await this.#partFor(call)).call(call);
  }

  /** Clears the lists of the base. */
  override forget(lists?: readonly ListName[]): void {
    this.#base?.forget(lists);
  }

  #reportHidden(action: string): void {
    if (this.#reported.has(action)) return;
    this.#reported.add(action);
    const { base } = this.#definition;
    const what = base && findKind(base.kind)?.isSaved ? "what you saved" : "the server's own tool";
    this.#log.info(`"${this.name}:${action}" is ${what}, and no capability of a registry`);
  }

  get #base(): Server | undefined {
    const { base } = this.#definition;
    return base && this.#opener.openPart(base);
  }

  async #partFor({ id, method }: Pick<Call, "id" | "method">): Promise<Server> {
    return method === undefined
      ? await this.#partWith(splitToolId(id).tool)
      : this.#base ?? this.#unknown;
  }

  async #partWith(tool: string): Promise<Server> {
    const { base, actions } = this.#definition;
    const [opener, unknown] = [this.#opener, this.#unknown];
    const action = actions.find((each) => each.action === tool);
    if (base === undefined) return action === undefined ? unknown : opener.openPart(action.listing);
    const server = opener.openPart(base);
    if (action === undefined) return server;
    // If the base and a capability have the tool, the base is used. A blocked base has no tools.
    const own = base.whyBlocked() === undefined ? await server.list("tools").catch(() => []) : [];
    return own.some(({ name }) => name === tool) ? server : opener.openPart(action.listing);
  }
}
