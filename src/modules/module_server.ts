/**
 * A server of kind deno: a module that runs in the sandbox.
 *
 * @module
 */

import type { Call, Outcome } from "../core/call.ts";
import { KnownServer, type KnownServerOptions, toolsOnly } from "../core/known_server.ts";
import type { ListItem, ListName } from "../core/lists.ts";
import type { Modules } from "./modules.ts";
import type { ModuleUse } from "./loader.ts";

/** What a module's server is made with. */
export interface ModuleServerOptions extends KnownServerOptions {
  readonly modules: Modules;
  /** Returns the module as it may run now: asked anew for each use, because trust can change. */
  readonly use: () => ModuleUse;
  /** Has the code at hand before it is read. */
  readonly fetched?: () => Promise<void>;
}

const NO_ITEMS: readonly ListItem[] = [];

/** A module as a server. */
export class ModuleServer extends KnownServer {
  readonly #options: ModuleServerOptions;

  /** Takes what runs modules; loads nothing. */
  constructor(options: ModuleServerOptions) {
    super(options);
    this.#options = options;
  }

  /** Returns in plain sentences what a tool gets, and what it asks for in vain. */
  override async permissionLines(tool: string): Promise<readonly string[]> {
    return await this.#options.modules.permissionLines(this.#options.use(), tool);
  }

  /** Tells whether a tool may neither write nor use the network or programs. */
  override async onlyReads(tool: string): Promise<boolean> {
    return await this.#options.modules.onlyReads(this.#options.use(), tool);
  }

  /** Returns the tools; a module has nothing else. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    if (list !== "tools") return NO_ITEMS;
    const { modules, use, fetched } = this.#options;
    await fetched?.();
    return (await modules.load(use())).definitions;
  }

  /** Runs a tool in the sandbox. */
  override async call(call: Call): Promise<Outcome> {
    if (call.method !== undefined) throw toolsOnly(this.name);
    return await this.#options.modules.call(this.#options.use(), call);
  }
}
