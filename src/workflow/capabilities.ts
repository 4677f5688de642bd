/**
 * The capabilities that the user saved. This module lists and runs them, and detects changes of
 * the tools that they call.
 *
 * @module
 */

import type { CallTool, Outcome, ToolResult } from "../protocol/call.ts";
import { asPmlError, PmlError } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import type { CheckedCall } from "../servers/server.ts";
import { memoized } from "../core/memo.ts";
import type { WarningLog } from "../io/private_files.ts";
import { type CapabilityTools, SavedCapabilityRules } from "../policy/capability_rules.ts";
import { definitionChanges } from "../policy/definition_changes.ts";
import { definitionHash } from "../policy/integrity.ts";
import type { Policy } from "../policy/policy.ts";
import type { Unapproved } from "../policy/server_identity.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { splitToolId, type ToolId } from "../core/tool_id.ts";
import type {
  CapabilityNamespace,
  CapabilityRunner,
  RegistryCapability,
} from "../servers/capability/capability_server.ts";
import { type Capability, capabilityTool } from "../servers/capability/capability.ts";
import type { CapabilityCall } from "./capability_call.ts";
import { type Approved, CapabilityStore } from "./capability_store.ts";

/** The known definition of a tool; "gone" if it was removed, undefined if it is unknown. */
export type KnownDefinition = ToolDefinition | "gone" | undefined;

/** The tools that capabilities call. */
export interface ToolSource {
  /** Returns the known definition of a tool. Asks its server only if `asksServer` is true. */
  definition(id: ToolId, how: { readonly asksServer: boolean }): Promise<KnownDefinition>;
}

/** Runs the code and the plans of capabilities. `Workflow` implements it. */
export interface CapabilityRuns {
  /** Runs a capability. */
  runCapability(capability: Capability, call: CapabilityCall): Promise<ToolResult>;
}

/** Opens the pipeline and the workflow at their first use. `App` implements it. */
export interface RunOpener {
  /** Opens the call pipeline. */
  callPath(): Promise<{ readonly callTool: CallTool }>;
  /** Opens the runner of code and plans. */
  workflow(): Promise<CapabilityRuns>;
}

/** The collaborators of `Capabilities`. */
export interface CapabilitiesParts {
  readonly policy: Policy;
  readonly log: WarningLog;
  readonly tools: ToolSource;
  readonly opener: RunOpener;
}

/** The changes of the tools that a capability calls, since it was approved. */
export interface CapabilityChanges {
  /** One or more lines for each tool whose definition changed. */
  readonly lines: readonly string[];
  /** The new hashes of these tools. */
  readonly hashes: Readonly<Record<string, string>>;
  /** The tools that no longer exist. */
  readonly gone: readonly ToolId[];
}

/** The saved capabilities of the user. */
export class Capabilities implements CapabilityRunner, CapabilityTools {
  /** Reads and writes the saved capabilities. */
  readonly store: CapabilityStore;
  readonly #parts: CapabilitiesParts;
  readonly #hashOf = memoized(definitionHash);
  #approved: Approved = new Map();
  #namespaces: ReadonlyMap<string, CapabilityNamespace> = new Map();
  /** The capabilities that were read, by hash. A run reads them again. */
  readonly #loaded = new Map<string, Capability>();
  /** The remaining calls of each run of a capability. Nested capabilities share them. */
  readonly #callsLeft = new Map<string, { calls: number }>();

  /** Creates an instance. Reads nothing yet. */
  constructor(parts: CapabilitiesParts) {
    this.#parts = parts;
    this.store = new CapabilityStore(parts.policy.config.home);
  }

  /** The namespaces, by name. */
  get namespaces(): ReadonlyMap<string, CapabilityNamespace> {
    return this.#namespaces;
  }

  /** Reads the saved capabilities again, and updates the policy if they changed. */
  refresh(): void {
    const approved = this.#readApproved();
    const toText = (all: Approved) => JSON.stringify([...all].sort());
    if (toText(approved) === toText(this.#approved)) return;
    this.#approved = approved;
    const before = this.#namespaces;
    const grouped = Map.groupBy(approved, ([id]) => splitToolId(id).server);
    this.#namespaces = new Map([...grouped].map(([name, entries]) => {
      const hashes = new Map(entries);
      const namespace = before.get(name);
      return [
        name,
        namespace && toText(namespace.hashes) === toText(hashes) ? namespace : { name, hashes },
      ];
    }));
    const names = [...this.#namespaces.values()].flatMap(({ hashes }) => [...hashes.keys()]);
    this.#parts.policy.useCapabilities(new SavedCapabilityRules(names, this));
  }

  /** Returns the definition of a capability. Throws if its content is not approved. */
  definition(id: ToolId, registryCapability?: RegistryCapability): ToolDefinition {
    return capabilityTool(id, this.store.load(id, registryCapability));
  }

  /** Returns the definition of a saved capability; undefined if its content is not approved. */
  savedDefinition(id: ToolId): ToolDefinition | undefined {
    const capability = this.findUsable(id);
    return capability && capabilityTool(id, capability);
  }

  /** Returns a saved capability, cached or newly read; undefined if its content is not approved. */
  findUsable(id: ToolId): Capability | undefined {
    const hash = this.#approved.get(id);
    const cachedCapability = hash === undefined ? undefined : this.#loaded.get(hash);
    if (cachedCapability !== undefined || hash === undefined) return cachedCapability;
    try {
      const capability = this.store.load(id);
      this.#loaded.set(hash, capability);
      return capability;
    } catch (error) {
      this.#parts.log.warn(asPmlError(error).message);
      return undefined;
    }
  }

  /** Returns the tools that a capability calls; undefined if the id is not a capability. */
  toolsOf(id: ToolId): readonly ToolId[] | undefined {
    if (!this.#approved.has(id)) return undefined;
    // The ids were checked when the capability was read.
    return Object.keys(this.findUsable(id)?.toolsUsed ?? {}) as ToolId[];
  }

  /** Returns the approval that a call still needs; undefined if none is needed. */
  async findUnapproved(id: ToolId): Promise<Unapproved | undefined> {
    const capability = this.store.load(id);
    const { lines, hashes, gone: [gone] } = await this.findChanges(capability, {
      asksServer: true,
    });
    if (gone !== undefined) {
      throw new PmlError(
        "UNKNOWN_TOOL",
        `Cannot run "${id}": it calls "${gone}", which no longer exists`,
        {
          hint: `Restore that tool, or save "${id}" again`,
          detail: { gone },
        },
      );
    }
    // guard: capability-stale
    if (lines.length === 0) return undefined;
    const replacedHash = this.#approved.get(id);
    return {
      code: "APPROVAL_STALE",
      facts: [
        `The capability "${id}" calls tools that changed since it was approved:`,
        ...lines.map((line) => `  ${line}`),
        "Yes approves it with these tools as they are now",
      ],
      accept: async () => {
        const toolsUsed = { ...capability.toolsUsed, ...hashes };
        await this.save(id, { ...capability, toolsUsed }, replacedHash);
      },
    };
  }

  /** Returns the changes of the tools that a capability calls. */
  async findChanges(
    { toolsUsed, definitions = {} }: Capability,
    how: { readonly asksServer: boolean },
  ): Promise<CapabilityChanges> {
    const { tools } = this.#parts;
    // The ids were checked when the capability was read.
    const savedHashes = Object.entries(toolsUsed) as [ToolId, string][];
    const changes = await Promise.all(savedHashes.map(async ([id, savedHash]) => {
      const definition = await tools.definition(id, how);
      if (definition === "gone") return { gone: [id] };
      const hash = definition && this.#hashOf(definition);
      if (definition === undefined || hash === undefined || hash === savedHash) return {};
      const before = definitions[id];
      // If only the hash of the earlier definition is known, the lines show the whole new
      // definition.
      const isKept = before !== undefined && this.#hashOf(before) === savedHash;
      const lines = definitionChanges(
        isKept ? before : { name: definition.name, inputSchema: {} },
        definition,
      );
      return {
        hashes: { [id]: hash },
        lines: [`"${id}": was ${savedHash}, is ${hash}`, ...lines.map((line) => `  ${line}`)],
      };
    }));
    return {
      lines: changes.flatMap(({ lines = [] }) => lines),
      hashes: Object.assign({}, ...changes.map(({ hashes }) => hashes)),
      gone: changes.flatMap(({ gone = [] }) => gone),
    };
  }

  /** Returns a short note if a capability is stale. Sends nothing to servers. */
  async staleNote(id: ToolId): Promise<string | undefined> {
    const capability = this.findUsable(id);
    if (capability === undefined) return undefined;
    const { hashes } = await this.findChanges(capability, { asksServer: false });
    const names = Object.keys(hashes);
    return names.length === 0 ? undefined : `stale: ${names.join(", ")} changed since it was saved`;
  }

  /** Returns the definitions of tools, without removed and unknown tools. Asks their servers. */
  async definitionsOf(ids: readonly ToolId[]): Promise<Record<string, ToolDefinition>> {
    const { tools } = this.#parts;
    const all = await Promise.all(
      ids.map(async (id) => [id, await tools.definition(id, { asksServer: true })] as const),
    );
    return Object.fromEntries(
      all.flatMap(([id, definition]) => isObject(definition) ? [[id, definition]] : []),
    );
  }

  /** Returns the hashes of definitions. */
  hashesOf(definitions: Readonly<Record<string, ToolDefinition>>): Record<string, string> {
    const all = Object.entries(definitions).map(([id, each]) => [id, this.#hashOf(each)]);
    return Object.fromEntries(all);
  }

  /** Saves a capability with the definitions of its tools. */
  async save(id: ToolId, capability: Capability, replacedHash: string | undefined): Promise<void> {
    const definitions = await this.definitionsOf(Object.keys(capability.toolsUsed) as ToolId[]);
    await this.store.save(id, {
      ...capability,
      // Keeps the earlier definitions of tools that are unavailable now.
      definitions: { ...capability.definitions, ...definitions },
    }, { shownHash: replacedHash });
    this.refresh();
  }

  /**
   * Finds the chain of calls by which a capability would call itself; undefined if there is none.
   */
  findCycle(id: ToolId, { toolsUsed }: Capability): readonly string[] | undefined {
    const visited = new Set<string>();
    const search = (tools: readonly string[], path: readonly string[]): typeof path | undefined => {
      for (const tool of tools) {
        if (tool === id) return [...path, tool];
        if (visited.has(tool)) continue;
        visited.add(tool);
        const cycle = search(this.toolsOf(tool as ToolId) ?? [], [...path, tool]);
        if (cycle !== undefined) return cycle;
      }
      return undefined;
    };
    return search(Object.keys(toolsUsed), [id]);
  }

  /** Runs a capability. Each of its calls passes all checks. */
  async run(call: CheckedCall, registryCapability?: RegistryCapability): Promise<Outcome> {
    const { policy, opener } = this.#parts;
    const { id, run: parentRun = "", depth: callerDepth = 0 } = call;
    const { capabilityDepth, codeCalls: calls } = policy.config.limits;
    const depth = callerDepth + 1;
    // guard: capability-depth
    if (depth > capabilityDepth) {
      throw overloadedError(
        id,
        `${capabilityDepth} capabilities wait for each other`,
        "capability_depth",
      );
    }
    // Runs exactly the content whose hash was compared.
    const capability = this.store.load(id, registryCapability);
    const budget = this.#callsLeft.get(parentRun) ?? { calls };
    const runs = new Set<string>();
    try {
      const result = await (await opener.workflow()).runCapability(capability, {
        call,
        depth,
        maxCalls: calls,
        id: crypto.randomUUID(),
        isForeign: registryCapability !== undefined,
        callTool: async (inner) => {
          // A nested capability shares the remaining calls.
          if (inner.run !== undefined) {
            runs.add(inner.run);
            this.#callsLeft.set(inner.run, budget);
          }
          // guard: capability-calls
          if (budget.calls-- <= 0) {
            throw overloadedError(
              id,
              `it and the capabilities that it calls made ${calls} calls`,
              "code_calls",
            );
          }
          return await (await opener.callPath()).callTool(inner);
        },
      });
      return { kind: "result", result };
    } finally {
      for (const run of runs) this.#callsLeft.delete(run);
    }
  }

  #readApproved(): Approved {
    try {
      return this.store.readApproved();
    } catch (error) {
      this.#parts.log.warn(asPmlError(error).message);
      return new Map();
    }
  }
}

function overloadedError(id: ToolId, why: string, limit: string): PmlError {
  return new PmlError("OVERLOADED", `Cannot run "${id}": ${why} already`, {
    hint: `Do less in one call, or raise limits.${limit}`,
  });
}
