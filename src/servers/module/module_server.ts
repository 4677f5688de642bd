/**
 * Runs a server of kind deno: a module in the sandbox.
 *
 * @module
 */

import type { PmlError } from "../../core/errors.ts";
import type { Call, Outcome } from "../../protocol/call.ts";
import { KnownServer, type KnownServerOptions, toolsOnlyError } from "../known_server.ts";
import type { ListItem, ListName } from "../../protocol/lists.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { CheckedCall } from "../server.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import type { Modules } from "./modules.ts";
import type { ModuleUse } from "./loader.ts";

/** The code of a server. */
export interface ServerCode {
  /**
   * Returns the module with its current approval. Called for each use, because approvals can
   * change.
   */
  use(): ModuleUse;
  /** Fetches the code before it is read. */
  fetchCode?(): Promise<void>;
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
  findWrongArguments(
    call: Pick<Call, "id" | "arguments" | "cancellation">,
    { inputSchema }: ToolDefinition,
  ): Maybe<string | undefined> {
    return this.#modules.findWrongArguments(this.#code.use(), call, inputSchema);
  }

  /** Returns the error of a recent load that took too long. */
  lateStartError(): Promise<PmlError | undefined> {
    // If the module was not fetched yet, `use()` throws, and there was no start.
    return Promise.try(() => this.#modules.lateStart(this.#code.use())).catch(() => undefined);
  }

  /** Forgets that a load took too long. */
  forgetLateStart(): void {
    try {
      this.#modules.forgetLateStart(this.#code.use());
    } catch {
      // The code may not run. Loading it reports the reason.
    }
  }

  /**
   * Returns the error for a path in the arguments of a built-in tool that its grants do not
   * contain.
   */
  async whyRefused(call: Pick<Call, "id" | "method" | "arguments">): Promise<PmlError | undefined> {
    if (call.method !== undefined) return undefined;
    return await this.#modules.whyRefused(this.#code.use(), call);
  }

  /** Returns sentences that list the grants of a tool, and the permissions that it lacks. */
  override async permissionLines(tool: string): Promise<readonly string[]> {
    return await this.#modules.permissionLines(this.#code.use(), tool);
  }

  /** Returns whether a tool can neither write nor use the network or programs. */
  override async onlyReads(tool: string): Promise<boolean> {
    return await this.#modules.onlyReads(this.#code.use(), tool);
  }

  /**
   * Returns whether the permissions of a tool allow only reading; false until the module is loaded.
   */
  isReader(tool: string): boolean {
    return this.#modules.isReader(this.#code.use(), tool);
  }

  /** Returns the tools. A module has no other lists. */
  override async list(list: ListName): Promise<readonly ListItem[]> {
    if (list !== "tools") return NO_ITEMS;
    await this.#code.fetchCode?.();
    return (await this.#modules.load(this.#code.use())).definitions;
  }

  /** Runs a tool in the sandbox. */
  override async call(call: CheckedCall): Promise<Outcome> {
    if (call.method !== undefined) throw toolsOnlyError(this.name);
    return await this.#modules.call(this.#code.use(), call);
  }
}
