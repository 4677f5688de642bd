/**
 * Serves `tools/call`: finds the tool by its name, and calls it.
 *
 * @module
 */

import type { CallClient, Outcome } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, type JsonObject, withoutUndefined } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { splitCallMembers } from "./_call_members.ts";
import { adaptToClient } from "./_client_results.ts";
import { adaptResult } from "./_older_results.ts";
import { invalidParams, requiredText } from "./_params.ts";
import type { Tasks } from "./_tasks.ts";
import { bareTools } from "./exposure.ts";
import type { ClientRequest } from "./interaction/request_client.ts";
import type { Interaction } from "./interaction/interaction.ts";
import type { ToolCaller, ToolRequest } from "./_tool_caller.ts";
import type { MetaCalls } from "./meta_calls.ts";
import { listedMetaTools, type MetaTool } from "../config/exposure.ts";
import { isMetaTool } from "./meta_tools.ts";
import type { GatewayHost } from "./options.ts";
import type { Schemas } from "../calls/schemas.ts";
import { failureResult } from "../protocol/failures.ts";
import { appTools } from "../search/app_tools.ts";
import { SEARCH_HINT, severalTools, unknownTool } from "../servers/lists/unknown_tool.ts";

/** Calls tools for clients. */
export class ToolCalls {
  readonly #host: GatewayHost;
  readonly #interaction: Interaction;
  readonly #tasks: Tasks;
  readonly #caller: ToolCaller;
  #module: Promise<[typeof import("./meta_calls.ts"), Schemas]> | undefined;
  #metaCalls: MetaCalls | undefined;

  /** Takes the collaborators. The first call of a meta-tool loads the code of meta-tools. */
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
  call(request: ClientRequest): Promise<JsonObject> {
    return this.#serve(request).then(
      (result) => this.#answer(request, result),
      (error) => this.#answer(request, failureResult(this.#withListedName(error))),
    );
  }

  #serve(request: ClientRequest): Promise<JsonObject> {
    const { params, context } = request;
    try {
      const { arguments: args = {} } = params;
      const name = requiredText(params, "name");
      if (!isObject(args)) throw invalidParams("arguments must be an object");
      // Split the members only once: an approval is for exactly these members, even if the
      // configuration changes `clientMeta` before the call runs.
      const { meta, members } = splitCallMembers(
        params,
        this.#host.settings().clientMeta,
        context.members,
      );
      return this.#interaction.serve(request, (scope) => {
        const call = { arguments: args as JsonObject, scope, meta, members };
        return this.#callNamed(name, call, request);
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Returns an error whose hint does not name `search` if the client's list lacks it. */
  #withListedName(error: unknown): unknown {
    if (!(error instanceof PmlError) || error.hint !== SEARCH_HINT) return error;
    if (listedMetaTools(this.#host.settings()).includes("search")) return error;
    const { code, message, detail, cause } = error;
    const hint = "Use a name from `tools/list`";
    return new PmlError(code, message, { ...withoutUndefined({ detail }), hint, cause });
  }

  /** Returns a result in the form of the client, and counts it. */
  #answer({ client, clientName, params: { name } }: ClientRequest, result: JsonObject): JsonObject {
    const answer = adaptResult(client, adaptToClient(clientName, result));
    const countedName = typeof name === "string" && isMetaTool(name) ? name : "tools/call";
    this.#host.metrics.countAnswer(countedName, answer);
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

  /** Returns the loaded meta-tools for a client without a tool set; undefined for other clients. */
  #loadedMetaCalls(toolset: CallClient["toolset"]): MetaCalls | undefined {
    return toolset?.() === undefined ? this.#metaCalls : undefined;
  }

  /** Calls a tool by its name in a list. Does not wait if the code for the call is loaded. */
  #callNamed(name: string, call: ToolRequest, request: ClientRequest): Promise<Outcome> {
    if (isMetaTool(name)) return this.#callMeta(name, call, request);
    const id = findListedId(name, this.#host);
    const toolCall = this.#toToolCall(call, request);
    return id === undefined
      ? this.#callAfterLists(name, toolCall)
      : this.#caller.call(id, toolCall);
  }

  #callMeta(name: MetaTool, call: ToolRequest, request: ClientRequest): Promise<Outcome> {
    const meta = this.#loadedMetaCalls(request.toolset);
    if (meta !== undefined) return meta.call(name, call);
    return this.metaCalls(request.toolset).then((loaded) => loaded.call(name, call));
  }

  async #callAfterLists(
    name: string,
    call: ToolRequest & { readonly via: string },
  ): Promise<Outcome> {
    return await this.#caller.call(await this.#findAfterLists(name), call);
  }

  #toToolCall(call: ToolRequest, request: ClientRequest): ToolRequest & { readonly via: string } {
    const { arguments: args, scope, meta, members } = call;
    const headers = request.client.isStateless ? request.context.headers : undefined;
    const { task } = this.#tasks.taskOptions(request);
    return { arguments: args, scope, meta, members, task, headers, via: "tools/call" };
  }

  async #findAfterLists(name: string): Promise<ToolId> {
    const { servers } = this.#host;
    // A client may use names from a list of an earlier process, or of an earlier configuration.
    await servers.lists.prepare();
    const id = findListedId(name, this.#host) ?? this.#findForPage(name);
    if (id !== undefined) return id;
    throw unknownTool(name, servers);
  }

  /**
   * Returns the tool that a page calls. A page uses the tool's name at its own server, and clients
   * pass on the call unchanged. Throws if several tools have this name.
   */
  #findForPage(name: string): ToolId | undefined {
    const { servers, catalog } = this.#host;
    const [id, ...others] = appTools(catalog.list()).byName.get(name) ?? [];
    // Tools that the rules deny count, too. Otherwise a page's call could reach another server.
    // guard: page-names
    if (id !== undefined && others.length > 0) throw severalTools(name, [id, ...others], servers);
    return id;
  }
}

/** Returns the id of a tool by its name in a list; undefined if no known list has the name. */
function findListedId(
  name: string,
  host: GatewayHost,
): ToolId | undefined {
  const { catalog, servers } = host;
  const bare = host.settings().prefix ? undefined : bareTools(catalog).get(name)?.id;
  return bare ?? servers.idOf(name);
}
