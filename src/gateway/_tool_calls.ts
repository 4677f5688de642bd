/**
 * Serves `tools/call`: finds the tool of a name, and calls it.
 *
 * @module
 */

import type { CallClient, Outcome } from "../protocol/call.ts";
import { isObject, type JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { membersOf } from "./_call_members.ts";
import { forNamedClient } from "./_client_results.ts";
import { resultFor } from "./_older_results.ts";
import { invalidParams, requiredText } from "./_params.ts";
import type { Tasks } from "./_tasks.ts";
import { bareTools } from "./exposure.ts";
import type { ClientRequest } from "./interaction/client_request.ts";
import type { Interaction } from "./interaction/interaction.ts";
import type { ToolCaller, ToolRequest } from "./_tool_caller.ts";
import type { MetaCalls } from "./meta_calls.ts";
import type { MetaTool } from "../config/exposure.ts";
import { isMetaTool } from "./meta_tools.ts";
import type { GatewayHost } from "./options.ts";
import type { Schemas } from "../calls/schemas.ts";
import { failureResult } from "../protocol/failures.ts";
import { appTools } from "../search/app_tools.ts";
import { severalTools, unknownTool } from "../servers/lists/unknown_tool.ts";

/** Calls tools for clients. */
export class ToolCalls {
  readonly #host: GatewayHost;
  readonly #interaction: Interaction;
  readonly #tasks: Tasks;
  readonly #caller: ToolCaller;
  #module: Promise<[typeof import("./meta_calls.ts"), Schemas]> | undefined;
  #metaCalls: MetaCalls | undefined;

  /** Takes the collaborators; loads the meta-tools with the first call. */
  constructor(
    host: GatewayHost,
    { caller, interaction, tasks }: {
      readonly caller: ToolCaller;
      readonly interaction: Interaction;
      readonly tasks: Tasks;
    },
  ) {
    this.#host = host;
    this.#caller = caller;
    this.#interaction = interaction;
    this.#tasks = tasks;
  }

  /** Serves a `tools/call`. Returns failures as results; rejects with errors for the client. */
  async call(request: ClientRequest): Promise<JsonObject> {
    const { client, clientName, params } = request;
    let result: JsonObject;
    try {
      const { arguments: args = {} } = params;
      const name = requiredText(params, "name");
      if (!isObject(args)) throw invalidParams("arguments must be an object");
      // An approval binds to the members that were shown, also if the configuration has changed.
      const { meta, members } = membersOf(
        params,
        this.#host.settings().clientMeta,
        request.context.members,
      );
      result = await this.#interaction.serve(request, (scope) => {
        const call = { arguments: args as JsonObject, scope, meta, members };
        return this.#callNamed(name, call, request);
      });
    } catch (error) {
      result = failureResult(error);
    }
    const answer = resultFor(client, forNamedClient(clientName, result));
    const { name } = params;
    const counted = typeof name === "string" && isMetaTool(name) ? name : "tools/call";
    this.#host.metrics.answered(counted, answer);
    return answer;
  }

  /** Returns the meta-tools. The first call loads their module. */
  async metaCalls(toolset?: CallClient["toolset"]): Promise<MetaCalls> {
    this.#module ??= Promise.all([import("./meta_calls.ts"), this.#host.schemas()]);
    const [{ MetaCalls }, schemas] = await this.#module;
    const parts = { schemas, caller: this.#caller };
    this.#metaCalls ??= new MetaCalls(this.#host, parts);
    return this.#loadedMetaCalls(toolset) ??
      new MetaCalls(this.#host, { ...parts, toolset: toolset?.() });
  }

  /** Returns the loaded meta-tools for clients for which all tools exist; undefined for others. */
  #loadedMetaCalls(toolset: CallClient["toolset"]): MetaCalls | undefined {
    return toolset?.() === undefined ? this.#metaCalls : undefined;
  }

  /** Calls a tool by its name in a list. Does not wait if its modules are loaded. */
  #callNamed(name: string, call: ToolRequest, request: ClientRequest): Promise<Outcome> {
    if (isMetaTool(name)) return this.#callMeta(name, call, request);
    const id = listedId(name, this.#host);
    const own = this.#ownCall(call, request);
    return id === undefined ? this.#callLater(name, own) : this.#caller.call(id, own);
  }

  #callMeta(name: MetaTool, call: ToolRequest, request: ClientRequest): Promise<Outcome> {
    const meta = this.#loadedMetaCalls(request.toolset);
    if (meta !== undefined) return meta.call(name, call);
    return this.metaCalls(request.toolset).then((loaded) => loaded.call(name, call));
  }

  async #callLater(name: string, call: ToolRequest & { readonly via: string }): Promise<Outcome> {
    return await this.#caller.call(await this.#idOf(name), call);
  }

  #ownCall(call: ToolRequest, request: ClientRequest): ToolRequest & { readonly via: string } {
    const { arguments: args, scope, meta, members } = call;
    const headers = request.client.isStateless ? request.context.headers : undefined;
    const { task } = this.#tasks.wantedBy(request);
    return { arguments: args, scope, meta, members, task, headers, via: "tools/call" };
  }

  async #idOf(name: string): Promise<ToolId> {
    const { servers } = this.#host;
    // A client may know names from a list of an earlier PML, or from before a changed configuration.
    await servers.lists.prepare();
    const id = listedId(name, this.#host) ?? this.#ofPages(name);
    if (id !== undefined) return id;
    throw unknownTool(name, servers);
  }

  /**
   * Returns the tool that a page calls: pages know its name at their server alone, and clients pass
   * their calls on unchanged. Throws if several tools have the name.
   */
  #ofPages(name: string): ToolId | undefined {
    const { servers, catalog } = this.#host;
    const [id, ...others] = appTools(catalog.list()).byName.get(name) ?? [];
    // Denied tools count: a call for one server must not reach another.
    // guard: page-names
    if (id !== undefined && others.length > 0) throw severalTools(name, [id, ...others], servers);
    return id;
  }
}

/** Returns the id of a tool by its name in a list; undefined if no known list has the name. */
function listedId(
  name: string,
  host: GatewayHost,
): ToolId | undefined {
  const { catalog, servers } = host;
  const bare = host.settings().prefix ? undefined : bareTools(catalog).get(name)?.id;
  return bare ?? servers.idOf(name);
}
