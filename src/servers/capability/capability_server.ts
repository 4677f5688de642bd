/**
 * Runs a server of kind capability: the capabilities of one namespace, or one of a registry.
 *
 * @module
 */

import type { Call, Outcome } from "../../protocol/call.ts";
import { KnownServer, type KnownServerOptions, toolsOnly } from "../known_server.ts";
import type { Cancellation } from "../../core/cancellation.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { CheckedCall, ResolvedCall } from "../server.ts";
import type { Unapproved } from "../../policy/server_identity.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { type ToolId, toolId } from "../../core/tool_id.ts";

/** The capabilities of one namespace: the same object as long as none of them changes. */
export interface CapabilityNamespace {
  readonly name: string;
  /** The approved hashes, by id. */
  readonly hashes: ReadonlyMap<ToolId, string>;
}

/** A capability of a registry. */
export interface RegistryCapability {
  readonly id: ToolId;
  /** The hash of its content. It is approved like the hash of a module. */
  readonly hash: string;
  /** The path of its content after it was fetched. */
  readonly path: string;
  /** The tools that it declares to call. */
  readonly calls: readonly string[];
  readonly fetched: () => Promise<void>;
}

/** Reads and runs capabilities. */
export interface CapabilityRunner {
  /** Returns an approval request for a call; undefined if everything is approved. */
  unapproved(id: ToolId): Promise<Unapproved | undefined>;
  /** Returns the definition of a capability. Throws if its content is not the approved one. */
  definition(id: ToolId, outside?: RegistryCapability): ToolDefinition;
  /**
   * Returns the definition of a saved capability; undefined if its content is not the approved one.
   */
  savedDefinition(id: ToolId): ToolDefinition | undefined;
  /** Returns the tools that a saved capability calls; undefined if there is no such capability. */
  toolsOf(id: ToolId): readonly ToolId[] | undefined;
  /** Returns a short text if tools that a capability calls changed. Asks no server. */
  remark(id: ToolId): Promise<string | undefined>;
  /** Runs a capability. Each of its calls passes all checks. */
  run(call: CheckedCall, outside?: RegistryCapability): Promise<Outcome>;
}

/** The capabilities that the user saved, by namespace. */
export interface SavedNamespaces {
  readonly namespaces: ReadonlyMap<string, CapabilityNamespace>;
}

/** Checks a value against a schema of another author. */
export type CheckValue = (
  schema: JsonObject,
  value: unknown,
  cancellation: Cancellation,
) => Maybe<string | undefined>;

const NO_ITEMS: readonly ListItem[] = [];

/** A server whose tools are the capabilities of a namespace. */
export class CapabilityServer extends KnownServer {
  readonly #capabilities: CapabilityRunner;
  readonly #namespace: CapabilityNamespace;
  readonly #outside: RegistryCapability | undefined;
  readonly #wrong: CheckValue;
  #tools: readonly ListItem[] | undefined;

  /** Reads nothing yet. */
  constructor(options: KnownServerOptions, { capabilities, namespace, outside, wrong }: {
    readonly capabilities: CapabilityRunner;
    readonly namespace: CapabilityNamespace;
    readonly outside?: RegistryCapability | undefined;
    /** Returns why a value does not match a schema of another author. */
    readonly wrong: CheckValue;
  }) {
    super(options);
    this.#capabilities = capabilities;
    this.#namespace = namespace;
    this.#outside = outside;
    this.#wrong = wrong;
  }

  /**
   * Returns the changed tools that a capability calls. Throws INTEGRITY_MISMATCH if it is not the
   * approved one, and UNKNOWN_TOOL if a tool that it calls is gone.
   */
  override async unapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    const isOwn = call.method === undefined && this.#has(call.id) && this.#outside === undefined;
    if (!isOwn) return await super.unapproved(call);
    return await this.#capabilities.unapproved(call.id);
  }

  /** Returns the definition of a capability, as it is approved now. */
  override async definitionFor(call: Call): Promise<ToolDefinition> {
    const { id, method } = call;
    if (method !== undefined || !this.#has(id)) return await super.definitionFor(call);
    await this.#outside?.fetched();
    return this.#capabilities.definition(id, this.#outside);
  }

  /** Returns why the arguments of a call do not match the parameters of a capability. */
  wrongArguments(
    { arguments: args, cancellation }: Pick<Call, "arguments" | "cancellation">,
    { inputSchema }: ToolDefinition,
  ): Maybe<string | undefined> {
    return this.#wrong(inputSchema, args, cancellation);
  }

  /** Returns lines with the tools that a capability calls. */
  override permissionLines(tool: string): Promise<readonly string[]> {
    const id = toolId(this.name, tool);
    const own = this.#outside?.calls ?? this.#capabilities.toolsOf(id);
    const tools = this.#has(id) ? own ?? [] : [];
    return Promise.resolve(tools.map((called) => `calls ${called}`));
  }

  /** Returns the known changes since a capability was saved. */
  override async remark(tool: string): Promise<string | undefined> {
    const id = toolId(this.name, tool);
    return this.#has(id) ? await this.#capabilities.remark(id) : undefined;
  }

  /** Returns the capabilities; a namespace has no other lists. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    if (list !== "tools") return NO_ITEMS;
    const outside = this.#outside;
    if (outside !== undefined) {
      await outside.fetched();
      return [this.#capabilities.definition(outside.id, outside)];
    }
    return this.#tools ??= [...this.#namespace.hashes.keys()].flatMap((id) =>
      this.#capabilities.savedDefinition(id) ?? []
    );
  }

  /** Runs a capability. */
  override async call(call: CheckedCall): Promise<Outcome> {
    if (call.method !== undefined) throw toolsOnly(this.name);
    return await this.#capabilities.run(call, this.#outside);
  }

  #has(id: ToolId): boolean {
    return this.#namespace.hashes.has(id);
  }
}
