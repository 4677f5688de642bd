/**
 * Calls tools of servers for requests of clients, and keeps large results outside of answers.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import {
  type Call,
  type CallTool,
  type Outcome,
  textResult,
  type ToolResult,
} from "../protocol/call.ts";
import { headerMismatch } from "../protocol/failures.ts";
import { differingHeader } from "../protocol/marked_arguments.ts";
import { outputOf } from "../protocol/output.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { RequestScope } from "./interaction/client_request.ts";
import type { GatewayHost } from "./options.ts";

/** A request to call a tool, without the name of the tool. */
export interface ToolRequest {
  readonly arguments: JsonObject;
  readonly scope: RequestScope;
  /** The keys of its `_meta` that pass without being shown. */
  readonly meta?: JsonObject | undefined;
  /** Its other members, which the user sees. Plans and code pass neither on. */
  readonly members?: Call["members"];
  /** The client's wishes about tasks. */
  readonly task?: Call["task"];
  /** The headers of its HTTP request, which repeat arguments. */
  readonly headers?: Pick<Headers, "get"> | undefined;
}

/** Calls tools of servers. */
export class ToolCaller {
  readonly #host: GatewayHost;
  readonly #callTool: CallTool;

  /** Takes the host of the gateway, and the function that makes the calls of this gateway. */
  constructor(host: GatewayHost, callTool: CallTool) {
    this.#host = host;
    this.#callTool = callTool;
  }

  /** Calls a tool. */
  call(id: ToolId, request: ToolRequest & { readonly via: string }): Promise<Outcome> {
    return this.run(this.callOf(id, request));
  }

  /** Returns the call of a tool, or of another method of its server. */
  callOf(id: ToolId, request: ToolRequest & Pick<Call, "via" | "method">): Call {
    const { scope, headers, arguments: args, meta, members, task, via, method } = request;
    return {
      id,
      arguments: args,
      meta,
      members,
      task,
      via,
      method,
      actor: this.#host.settings().actor,
      callId: crypto.randomUUID(),
      cancellation: scope.cancellation,
      client: scope.client,
      answer: scope.answer,
      agrees: headers && ((tool: ToolDefinition) => {
        const header = differingHeader(tool, { args, headers });
        if (header !== undefined) throw headerMismatch(header);
      }),
    };
  }

  /** Runs a call. A large result may stay outside of the answer. */
  run(call: Call): Promise<Outcome> {
    return this.#host.settings().inlineBytes > 0 ? this.#keepLarge(call) : this.#callTool(call);
  }

  /** Makes a call, whose result stays whole. */
  runWhole(call: Call): Promise<Outcome> {
    return this.#callTool(call);
  }

  async #keepLarge(call: Call): Promise<Outcome> {
    const outcome = await this.#callTool(call);
    const { inlineBytes, actor } = this.#host.settings();
    // The configuration may have changed meanwhile.
    if (inlineBytes === 0 || outcome.kind === "ask" || outcome.task !== undefined) return outcome;
    const isText = outcome.result.content.every(({ type }) => type === "text");
    if (!isText || JSON.stringify(outcome.result).length <= inlineBytes) return outcome;
    const definition = await this.#definitionOf(call.id);
    // A client that validates the result with the schema would reject the link.
    const isWhole = definition === undefined || definition.outputSchema !== undefined;
    if (isWhole || outcome.result.isError === true) return outcome;
    const stored = (await this.#host.workflow()).keep(outputOf(outcome.result), actor);
    if (stored === undefined) return outcome;
    return { ...outcome, result: { ...outcome.result, ...linkTo(stored) } };
  }

  /** Returns the definition of a tool that has run; undefined if its server has ended since. */
  async #definitionOf(id: ToolId): Promise<ToolDefinition | undefined> {
    try {
      return await this.#host.servers.definition(id);
    } catch {
      return undefined;
    }
  }
}

/** Returns the content that replaces a large result: how models and clients can read it. */
function linkTo(stored: JsonObject): Pick<ToolResult, "content" | "structuredContent"> {
  const { kept: uri } = stored;
  const link = { type: "resource_link", uri, name: "result", mimeType: "application/json" };
  return {
    content: [...textResult(JSON.stringify(stored)).content, link],
    structuredContent: undefined,
  };
}
