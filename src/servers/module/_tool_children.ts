/**
 * The options and keys of the children that tools run in. They are built once, and again when
 * something that they depend on has changed.
 *
 * @module
 */

import { joinedPermissions, NO_PERMISSIONS, type Permissions } from "../../protocol/tool.ts";
import { type Access, type ServerGrants, ToolAccess } from "../../policy/grants.ts";
import type { ChildOptions } from "../../sandbox/sandbox.ts";
import type { Module, ModuleUse } from "./loader.ts";
import type { ModuleHost } from "./module_host.ts";

/** The child of a tool. */
export interface ToolChild {
  readonly options: ChildOptions;
  /** The key of children that have no module yet and can replace each other. */
  readonly warmKey: string;
  /** The key of children with this module. */
  readonly key: string;
}

/** A tool of a loaded module. */
export interface LoadedTool {
  readonly module: Module;
  readonly tool: string;
}

/** The access of a tool, and the values that it was computed from. */
interface KnownAccess {
  readonly shipped: ServerGrants | undefined;
  readonly granted: ServerGrants | undefined;
  readonly workspace: string;
  readonly access: ToolAccess;
}

/** The child of a tool, and the values that its options were built from. */
interface KnownChild {
  readonly from: readonly unknown[];
  readonly child: ToolChild;
}

interface CachedTool {
  access?: KnownAccess;
  child?: KnownChild;
}

/** The access of tools to which nothing is granted. */
export const NO_ACCESS: Access = { ...NO_PERMISSIONS, granted: [] };

/** Builds the options of children. */
export class ToolChildren {
  readonly #host: ModuleHost;
  readonly #tools = new WeakMap<Module, Map<string, CachedTool>>();

  /** Builds nothing yet. */
  constructor(host: ModuleHost) {
    this.#host = host;
  }

  /** Returns the child of a tool: the same object as long as nothing has changed. */
  of(use: ModuleUse, called: LoadedTool): ToolChild {
    const access = this.accessOf(use, called);
    const { protection, limits, osLayer } = this.#host;
    // Programs of built-in modules need to write only where the module may.
    const writesOnly = use.source.kind === "builtin" && !access.run.includes("*");
    const from = [access, writesOnly, protection, limits, osLayer];
    const tool = this.#toolOf(called);
    const isSame = tool.child?.from.every((one, at) => one === from[at]) === true;
    // The values of variables can change at any time.
    if (isSame && tool.child !== undefined && access.env.length === 0) return tool.child.child;
    const options = { ...this.optionsFor(access), writesOnly };
    const warmKey = this.warmKeyOf(options);
    const { module: { name, integrity } } = called;
    const child = { options, warmKey, key: JSON.stringify([name, integrity, warmKey]) };
    tool.child = { from, child };
    return child;
  }

  /** Returns the access of a tool with the present grants and links. */
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
    // The grants of a built-in module and those of the user are joined.
    const grants = joinedPermissions([shipped ?? {}, granted ?? {}]);
    const permissions = askedBy(called);
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

/** Returns the permissions that a tool asks for. */
export function askedBy({ module: { meta }, tool }: LoadedTool): Permissions {
  const entry = meta.tools.find(({ definition }) => definition.name === tool);
  return entry?.permissions ?? NO_PERMISSIONS;
}
