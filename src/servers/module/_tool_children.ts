/**
 * Builds the options and keys of the child processes in which tools run. Caches them until a value
 * on which they depend changes.
 *
 * @module
 */

import { NO_PERMISSIONS, type Permissions, unionOfPermissions } from "../../protocol/tool.ts";
import { type Access, type ServerGrants, ToolAccess } from "../../policy/grants.ts";
import type { ChildOptions } from "../../sandbox/sandbox.ts";
import type { Module, ModuleUse } from "./loader.ts";
import type { ModuleHost } from "./module_host.ts";

/** The options and keys of the child in which a tool runs. */
export interface ToolChild {
  readonly options: ChildOptions;
  /** The key of children that have the right options for this tool, but no module yet. */
  readonly warmKey: string;
  /** The key of children that have the right options for this tool, and its module. */
  readonly key: string;
}

/** A tool of a loaded module. */
export interface LoadedTool {
  readonly module: Module;
  readonly tool: string;
}

/** The access of a tool, and the values from which it was computed. */
interface CachedAccess {
  readonly shipped: ServerGrants | undefined;
  readonly granted: ServerGrants | undefined;
  readonly workspace: string;
  readonly access: ToolAccess;
}

/** The child of a tool, and the values from which its options were built. */
interface CachedChild {
  readonly from: readonly unknown[];
  readonly child: ToolChild;
}

interface CachedTool {
  access?: CachedAccess;
  child?: CachedChild;
}

/** The access of tools without grants. */
export const NO_ACCESS: Access = { ...NO_PERMISSIONS, granted: [] };

/** Builds the options of children. */
export class ToolChildren {
  readonly #host: ModuleHost;
  readonly #tools = new WeakMap<Module, Map<string, CachedTool>>();

  /** Builds nothing yet. */
  constructor(host: ModuleHost) {
    this.#host = host;
  }

  /** Returns the options and keys for a tool: the same object until something changes. */
  of(use: ModuleUse, called: LoadedTool): ToolChild {
    const access = this.accessOf(use, called);
    const { protection, limits, osLayer } = this.#host;
    // Programs of a built-in module may write only where the module may, unless it may run any
    // program.
    const writesOnly = use.source.kind === "builtin" && !access.run.includes("*");
    const from = [access, writesOnly, protection, limits, osLayer];
    const tool = this.#toolOf(called);
    const isSame = tool.child?.from.every((value, index) => value === from[index]) === true;
    // If the tool gets variables, the options are built again: their values can change at any time.
    if (isSame && tool.child !== undefined && access.env.length === 0) return tool.child.child;
    const options = { ...this.optionsFor(access), writesOnly };
    const warmKey = this.warmKeyOf(options);
    const { module: { name, integrity } } = called;
    const child = { options, warmKey, key: JSON.stringify([name, integrity, warmKey]) };
    tool.child = { from, child };
    return child;
  }

  /**
   * Returns the access of a tool with the current grants. Links may have changed since the last
   * call.
   */
  accessOf({ source, grants: granted }: ModuleUse, called: LoadedTool): Access {
    // guard: draft-grants
    if (source.kind === "file" && source.draft && source.isGranted !== true) return NO_ACCESS;
    const shipped = source.kind === "builtin" ? source.grants : undefined;
    const workspace = this.#host.workspace;
    const tool = this.#toolOf(called);
    const cacheEntry = tool.access;
    const isSame = cacheEntry?.shipped === shipped && cacheEntry?.granted === granted &&
      cacheEntry?.workspace === workspace;
    if (cacheEntry !== undefined && isSame) return cacheEntry.access.now();
    // A built-in module has the grants that ship with PML, and the grants of the user.
    const grants = unionOfPermissions([shipped ?? {}, granted ?? {}]);
    const permissions = permissionsOf(called);
    const access = new ToolAccess(permissions, { workspace, grants });
    tool.access = { shipped, granted, workspace, access };
    return access.now();
  }

  /** Returns the options of a child with this access. */
  optionsFor({ granted, env, ...access }: Access): ChildOptions {
    const host = this.#host;
    const { home, workspace, programEnvironment: environment, limits } = host;
    const { heapMb, rssMb, frameBytes, frames, resultBytes, writeBytes, startMs } = limits;
    return {
      ...access,
      home,
      workspace,
      env: Object.fromEntries(env.map((name) => [name, host.variable(name) ?? null])),
      environment,
      protection: { ...host.protection, granted },
      limits: { heapMb, rssMb, frameBytes, frames, resultBytes, writeBytes, startMs },
    };
  }

  /** Returns the key of children with these options that have no module yet. */
  warmKeyOf(options: ChildOptions): string {
    return JSON.stringify([options, this.#host.osLayer]);
  }

  #toolOf({ module, tool }: LoadedTool): CachedTool {
    const tools = this.#tools.get(module) ?? new Map<string, CachedTool>();
    this.#tools.set(module, tools);
    const entry = tools.get(tool) ?? {};
    tools.set(tool, entry);
    return entry;
  }
}

/** Returns the permissions that a tool requests in its metadata. */
export function permissionsOf({ module: { meta }, tool }: LoadedTool): Permissions {
  const entry = meta.tools.find(({ definition }) => definition.name === tool);
  return entry?.permissions ?? NO_PERMISSIONS;
}
