/**
 * Runs a server of kind capability: the saved capabilities of one namespace, or one capability of a
 * registry.
 *
 * @module
 */

import type { Call, Outcome } from "../../protocol/call.ts";
import { KnownServer, type KnownServerOptions, toolsOnlyError } from "../known_server.ts";
import type { Cancellation } from "../../core/cancellation.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { CheckedCall, ResolvedCall } from "../server.ts";
import type { Unapproved } from "../../policy/server_identity.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { type ToolId, toolId } from "../../core/tool_id.ts";

/**
 * The saved capabilities of one namespace: the same object until one of the capabilities changes.
 */
export interface CapabilityNamespace {
  readonly name: string;
  /** The approved hashes, by id. */
  readonly hashes: ReadonlyMap<ToolId, string>;
}

/** A capability of a registry. */
export interface RegistryCapability {
  readonly id: ToolId;
  /** The hash of the content. An approval covers this hash, as with a module. */
  readonly hash: string;
  /** The path of the file that `fetchContent()` writes. */
  readonly path: string;
  /** The tools that the manifest declares as called. */
  readonly calls: readonly string[];
  readonly fetchContent: () => Promise<void>;
}

/** Reads and runs capabilities. */
export interface CapabilityRunner {
  /** Returns an approval request for a call; undefined if everything is approved. */
  findUnapproved(id: ToolId): Promise<Unapproved | undefined>;
  /**
   * Returns the definition of a capability. Throws if its content differs from the approved
   * content.
   */
  definition(id: ToolId, registryCapability?: RegistryCapability): ToolDefinition;
  /**
   * Returns the definition of a saved capability; undefined if its content differs from the
   * approved content.
   */
  savedDefinition(id: ToolId): ToolDefinition | undefined;
  /** Returns the tools that a saved capability calls; undefined if there is no such capability. */
  toolsOf(id: ToolId): readonly ToolId[] | undefined;
  /**
   * Returns a short text if tools that a capability calls have changed. Sends no request to
   * servers.
   */
  staleNote(id: ToolId): Promise<string | undefined>;
  /** Runs a capability. Each of its calls passes all checks. */
  run(call: CheckedCall, registryCapability?: RegistryCapability): Promise<Outcome>;
}

/** The capabilities that the user saved, by namespace. */
export interface SavedNamespaces {
  readonly namespaces: ReadonlyMap<string, CapabilityNamespace>;
}

/** Returns why a value does not match a schema of another author; undefined if it matches. */
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
  readonly #registryCapability: RegistryCapability | undefined;
  readonly #checkValue: CheckValue;
  #tools: readonly ListItem[] | undefined;

  /** Reads nothing yet. */
  constructor(
    options: KnownServerOptions,
    { capabilities, namespace, registryCapability, checkValue }: {
      readonly capabilities: CapabilityRunner;
      readonly namespace: CapabilityNamespace;
      readonly registryCapability?: RegistryCapability | undefined;
      /** Returns why a value does not match a schema of another author. */
      readonly checkValue: CheckValue;
    },
  ) {
    super(options);
    this.#capabilities = capabilities;
    this.#namespace = namespace;
    this.#registryCapability = registryCapability;
    this.#checkValue = checkValue;
  }

  /**
   * Returns an approval request for changed tools that a saved capability calls. Throws
   * `INTEGRITY_MISMATCH` if its content differs from the approved content, and `UNKNOWN_TOOL` if a
   * tool that it calls no longer exists. For other names, the approval of the server decides.
   */
  override async findUnapproved(call: ResolvedCall): Promise<Unapproved | undefined> {
    const isSaved = call.method === undefined && this.#has(call.id) &&
      this.#registryCapability === undefined;
    if (!isSaved) return await super.findUnapproved(call);
    return await this.#capabilities.findUnapproved(call.id);
  }

  /** Returns the approved definition of a capability. */
  override async definitionFor(call: Call): Promise<ToolDefinition> {
    const { id, method } = call;
    if (method !== undefined || !this.#has(id)) return await super.definitionFor(call);
    await this.#registryCapability?.fetchContent();
    return this.#capabilities.definition(id, this.#registryCapability);
  }

  /** Returns why the arguments of a call do not match the parameters of a capability. */
  findWrongArguments(
    { arguments: args, cancellation }: Pick<Call, "arguments" | "cancellation">,
    { inputSchema }: ToolDefinition,
  ): Maybe<string | undefined> {
    return this.#checkValue(inputSchema, args, cancellation);
  }

  /** Returns lines with the tools that a capability calls. */
  override permissionLines(tool: string): Promise<readonly string[]> {
    const id = toolId(this.name, tool);
    const calledTools = this.#registryCapability?.calls ?? this.#capabilities.toolsOf(id);
    const tools = this.#has(id) ? calledTools ?? [] : [];
    return Promise.resolve(tools.map((called) => `calls ${called}`));
  }

  /** Returns a remark about the tools that have changed since a capability was saved. */
  override async remarkOn(tool: string): Promise<string | undefined> {
    const id = toolId(this.name, tool);
    return this.#has(id) ? await this.#capabilities.staleNote(id) : undefined;
  }

  /** Returns the capabilities; a namespace has no other lists. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    if (list !== "tools") return NO_ITEMS;
    const registryCapability = this.#registryCapability;
    if (registryCapability !== undefined) {
      await registryCapability.fetchContent();
      return [this.#capabilities.definition(registryCapability.id, registryCapability)];
    }
    return this.#tools ??= [...this.#namespace.hashes.keys()].flatMap((id) =>
      this.#capabilities.savedDefinition(id) ?? []
    );
  }

  /** Runs a capability. */
  override async call(call: CheckedCall): Promise<Outcome> {
    if (call.method !== undefined) throw toolsOnlyError(this.name);
    return await this.#capabilities.run(call, this.#registryCapability);
  }

  #has(id: ToolId): boolean {
    return this.#namespace.hashes.has(id);
  }
}
