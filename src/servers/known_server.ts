/**
 * The base class of all kinds of servers.
 *
 * @module
 */

import type { Call, Outcome } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, textOf } from "../core/json.ts";
import type { ListItem, ListName } from "../protocol/lists.ts";
import type { Maybe } from "../core/maybe.ts";
import { type CheckedCall, methodDefinition, type ResolvedCall, type Server } from "./server.ts";
import type { ServerIdentity, Unapproved } from "../policy/server_identity.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import { skillDefinition, skillOf } from "../protocol/skills.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/** The facts about a server that are known without opening it, as the directory lists them. */
export type Listing = Pick<
  Server,
  | "name"
  | "title"
  | "origin"
  | "kind"
  | "definition"
  | "settings"
  | "reportsChanges"
  | "checksItself"
  | "whyBlocked"
>;

/**
 * Finds out whether a server is approved, and creates approval requests for its unapproved parts.
 */
export interface Approval
  extends Pick<Server, "identity" | "findUnapproved" | "approvedDefinitions"> {
  /** Returns one line that describes the server in an approval request. */
  text(): string;
}

/**
 * Finds a tool in the lists of its server, as `Servers.definition` does. Throws `UNKNOWN_TOOL`, or
 * the error of reading the lists.
 */
export type FindTool = (id: ToolId) => Maybe<ToolDefinition>;

/** The `via` of calls that a capability makes. Only such calls can use internal tools. */
export const VIA_CAPABILITY = "capability";

/** The options of every server. */
export interface KnownServerOptions {
  readonly listing: Listing;
  readonly approval: Approval;
  readonly find: FindTool;
}

const NO_LINES: readonly string[] = [];

/** A `KnownServer` has the members of its listing. */
export interface KnownServer extends Listing {}

/** A server that has a definition. Each kind implements how it lists and how it runs calls. */
export abstract class KnownServer implements Server {
  readonly #options: KnownServerOptions;

  /** Starts nothing. */
  constructor(options: KnownServerOptions) {
    this.#options = options;
    Object.assign(this, options.listing);
  }

  /** Returns the identity that an approval covers. */
  identity(): Promise<ServerIdentity | undefined> {
    return this.#options.approval.identity();
  }

  /** Returns an approval request for a call; undefined if everything is approved. */
  findUnapproved(call: ResolvedCall): Maybe<Unapproved | undefined> {
    return this.#options.approval.findUnapproved(call);
  }

  /** Returns the definition of the tool or method of a call. */
  definitionFor({ id, method, via, arguments: args }: Call): Maybe<ToolDefinition> {
    if (method !== undefined) {
      return splitToolId(id).tool === "@skills"
        ? this.#skillOrMethod(method, args.uri)
        : methodDefinition(method);
    }
    const { find } = this.#options;
    // guard: internal-tools
    if (via === VIA_CAPABILITY) return this.#findInternal(id).then((tool) => tool ?? find(id));
    return find(id);
  }

  /** Returns the definition of the skill with this address; without one, that of the method. */
  async #skillOrMethod(method: string, uri: unknown): Promise<ToolDefinition> {
    // Reading the lists of a server runs its code, so a blocked server is not asked.
    const skills = this.whyBlocked() === undefined ? await this.list("skills") : [];
    const skill = skillOf(skills, textOf(uri));
    return skill === undefined ? methodDefinition(method) : skillDefinition(skill);
  }

  /** Returns the definition of an internal tool, which lists for clients do not contain. */
  async #findInternal(id: ToolId): Promise<ToolDefinition | undefined> {
    // Reading the lists of a server runs its code, so a blocked server is not asked.
    if (this.whyBlocked() !== undefined) return undefined;
    const { tool } = splitToolId(id);
    const all = await this.list("tools") as readonly ToolDefinition[]; // each server checks its tools
    return all.find(({ name, visibility }) => name === tool && visibility === "internal");
  }

  /** Returns lines that describe the server and the permissions of the tool. */
  async consentLines({ id }: Pick<Call, "id">): Promise<readonly string[]> {
    const lines = await this.permissionLines(splitToolId(id).tool);
    return [this.#options.approval.text(), ...lines.map((line) => `It ${line}`)];
  }

  /** Returns no lines: by default, PML does not know the permissions of a tool. */
  permissionLines(_tool: string): Promise<readonly string[]> {
    return Promise.resolve(NO_LINES);
  }

  /** Returns undefined: by default, PML does not know the effects of a tool. */
  onlyReads(_tool: string): Promise<boolean | undefined> {
    return Promise.resolve(undefined);
  }

  /** Returns undefined: there is no remark. */
  remarkOn(_tool: string): Promise<string | undefined> {
    return Promise.resolve(undefined);
  }

  /** Maps tools that changed without an approval to their approved definitions. */
  async approvedDefinitions(
    tools: readonly ToolDefinition[],
  ): Promise<ReadonlyMap<ToolDefinition, ToolDefinition>> {
    return await this.#options.approval.approvedDefinitions?.(tools) ?? new Map();
  }

  /** Does nothing: by default, a server caches no lists. */
  forget(_lists?: readonly ListName[]): void {}

  /** Returns a list. */
  abstract list(list: ListName): Promise<readonly ListItem[]>;

  /** Runs a call. */
  abstract call(call: CheckedCall): Promise<Outcome>;
}

/** Returns the error for a request to a server that only has tools. */
export function toolsOnlyError(server: string): PmlError {
  return new PmlError("BAD_REQUEST", `Cannot ask ${quoted(server)}: it has tools only`, {
    hint: "Read `pml://servers`, which lists the features of each server",
  });
}
