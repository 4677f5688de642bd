/**
 * Runs a server of kind deno: a module in the sandbox.
 *
 * @module
 */

import type { Call, Outcome } from "../../protocol/call.ts";
import { KnownServer, type KnownServerOptions, toolsOnly } from "../known_server.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { CheckedCall } from "../server.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { Modules } from "./modules.ts";
import type { ModuleUse } from "./loader.ts";

/** The code of a server. */
export interface ServerCode {
  /** Returns the module as it may run now. It is called for each use, because trust can change. */
  use(): ModuleUse;
  /** Fetches the code before it is read. */
  fetched?(): Promise<void>;
}

const NO_ITEMS: readonly ListItem[] = [];

/** A server that is a module. */
export class ModuleServer extends KnownServer {
  readonly #modules: Modules;
  readonly #code: ServerCode;

  /** Loads nothing yet. */
  constructor(options: KnownServerOptions, modules: Modules, code: ServerCode) {
    super(options);
    this.#modules = modules;
    this.#code = code;
  }

  /** Returns why the arguments of a call do not match the schema of its tool. */
  wrongArguments(
    call: Pick<Call, "id" | "arguments" | "cancellation">,
    { inputSchema }: ToolDefinition,
  ): Maybe<string | undefined> {
    return this.#modules.wrongArguments(this.#code.use(), call, inputSchema);
  }

  /** Returns sentences that list the grants of a tool, and the permissions that it lacks. */
  override async permissionLines(tool: string): Promise<readonly string[]> {
    return await this.#modules.permissionLines(this.#code.use(), tool);
  }

  /** Returns whether a tool can neither write nor use the network or programs. */
  override async onlyReads(tool: string): Promise<boolean> {
    return await this.#modules.onlyReads(this.#code.use(), tool);
  }

  /** Returns whether the permissions of a tool only let it read. False until it is loaded. */
  isReader(tool: string): boolean {
    return this.#modules.isReader(this.#code.use(), tool);
  }

  /** Returns the tools; a module has no other lists. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    if (list !== "tools") return NO_ITEMS;
    await this.#code.fetched?.();
    return (await this.#modules.load(this.#code.use())).definitions;
  }

  /** Runs a tool in the sandbox. */
  override async call(call: CheckedCall): Promise<Outcome> {
    if (call.method !== undefined) throw toolsOnly(this.name);
    return await this.#modules.call(this.#code.use(), call);
  }
}
