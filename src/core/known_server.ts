/**
 * What servers of every kind have in common.
 *
 * @module
 */

import type { Call, Outcome } from "./call.ts";
import { PmlError } from "./errors.ts";
import { quoted } from "./json.ts";
import type { ListItem, ListName } from "./lists.ts";
import { methodDefinition, type PassCall, type Server } from "./server.ts";
import type { ServerIdentity, Unapproved } from "./server_identity.ts";
import { splitToolId, type ToolId } from "./tool_id.ts";
import type { ToolDefinition } from "./tool.ts";
import type { ToolSettings } from "./tool_settings.ts";

/** A server as the directory lists it: what is known without opening anything. */
export type Listing = Pick<
  Server,
  | "name"
  | "title"
  | "origin"
  | "kind"
  | "definition"
  | "settings"
  | "tells"
  | "checksArguments"
  | "blocked"
>;

/** Says what of a server is approved. */
export interface Approval extends Pick<Server, "identity" | "unapproved"> {
  /** Returns what the server is, in one line, for the question to the person. */
  text(): string;
}

/** Finds a tool in the lists of its server; throws UNKNOWN_TOOL, or why they cannot be read. */
export type FindTool = (id: ToolId) => Promise<ToolDefinition>;

/** What each server is made with. */
export interface KnownServerOptions {
  readonly listing: Listing;
  readonly approval: Approval;
  readonly find: FindTool;
}

const NO_LINES: readonly string[] = [];

/** A server that is defined somewhere. Each kind says how it lists and how it runs. */
export abstract class KnownServer implements Server {
  readonly name: string;
  readonly title: string | undefined;
  readonly origin: Server["origin"];
  readonly kind: string;
  readonly definition: object | undefined;
  readonly settings: ToolSettings | undefined;
  readonly tells: boolean;
  readonly checksArguments: boolean;
  readonly #options: KnownServerOptions;

  /** Takes what is known of it; starts nothing. */
  constructor(options: KnownServerOptions) {
    this.#options = options;
    const { listing } = options;
    ({ name: this.name, title: this.title, origin: this.origin, kind: this.kind } = listing);
    this.definition = listing.definition;
    this.settings = listing.settings;
    this.tells = listing.tells;
    this.checksArguments = listing.checksArguments;
  }

  /** Returns what an approval binds to. */
  identity(): Promise<ServerIdentity | undefined> {
    return this.#options.approval.identity();
  }

  /** Returns why it may not run now. */
  blocked(): string | undefined {
    return this.#options.listing.blocked();
  }

  /** Returns what nobody has approved yet of what a call needs. */
  unapproved(call: PassCall): Promise<Unapproved | undefined> {
    return this.#options.approval.unapproved(call);
  }

  /** Returns the definition of the tool or method of a call. */
  async definitionFor({ id, method }: Call): Promise<ToolDefinition> {
    if (method !== undefined) return methodDefinition(method);
    return await this.#options.find(id);
  }

  /** Returns what the server is, and what the tool may do. */
  async consentLines({ id }: Pick<Call, "id">): Promise<readonly string[]> {
    const lines = await this.permissionLines(splitToolId(id).tool);
    return [this.#options.approval.text(), ...lines.map((line) => `It ${line}`)];
  }

  /** Returns nothing: what a program does is its own affair. */
  permissionLines(_tool: string): Promise<readonly string[]> {
    return Promise.resolve(NO_LINES);
  }

  /** Returns false: nobody can tell. */
  onlyReads(_tool: string): Promise<boolean> {
    return Promise.resolve(false);
  }

  /** Forgets lists. */
  forget(_lists?: readonly ListName[]): void {}

  /** Returns a list. */
  abstract list(list: ListName): Promise<readonly ListItem[]>;

  /** Runs a call. */
  abstract call(call: Call): Promise<Outcome>;
}

/** Makes the error of a request that a server of tools alone cannot answer. */
export function toolsOnly(server: string): PmlError {
  return new PmlError("BAD_REQUEST", `Cannot ask ${quoted(server)}: it has tools only`, {
    hint: "See `pml://servers` for what each server has",
  });
}
