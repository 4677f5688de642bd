/**
 * Calls of tools that are served at once: without the gates, which found nothing to ask in a call
 * before, and without what a client can be asked by, which is made when a server asks.
 *
 * @module
 */

import type { Call, Meanwhile, Outcome, ToolResult } from "../core/call.ts";
import { isObject, type JsonObject } from "../core/json.ts";
import { assertSameHeaders } from "../core/marked_arguments.ts";
import type { Cancel } from "../core/quick_tool.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Client } from "./_clients.ts";
import type { ClientRequest, Exchange } from "./_exchange.ts";
import { takes } from "./_tasks.ts";
import { capabilitiesOf, clientNameOf } from "./asking.ts";
import type { QuickContext } from "./connection.ts";
import { isMetaTool } from "./meta_tools.ts";
import type { GatewayOptions } from "./options.ts";
import { errorResult, failed, refusal } from "./results.ts";

/** What the gateway does for each request, also for one that is served at once. */
export interface QuickParts extends Pick<GatewayOptions, "begin" | "settings" | "metrics"> {
  readonly exchange: Exchange;
  /** Returns the id of a tool by the name in a list; undefined if that has to be looked up. */
  readonly idOf: (name: string) => ToolId | undefined;
  /** Returns the id of a tool by the name that a model gave. */
  readonly namedId: (name: string) => ToolId | undefined;
  /** Takes note of an outcome, and returns it. */
  readonly linked: (call: Pick<Call, "id" | "method">, outcome: Outcome) => Outcome;
  /** Returns a result as the client that sent the request shows it. */
  readonly forClient: (
    request: { readonly client: Client; readonly name: string },
    result: JsonObject,
  ) => JsonObject;
  /** Serves the request in the usual way. */
  readonly serve: (
    request: Pick<ClientRequest, "client" | "context" | "params">,
  ) => Promise<JsonObject>;
}

/** A request of a client to call a tool. */
interface ToolRequest {
  readonly client: Client;
  readonly params: JsonObject;
  readonly from: QuickContext;
}

/** A call in a request. */
interface Wanted extends Pick<Call, "via" | "arguments"> {
  readonly id: ToolId;
}

/** Begins a call that can run at once; undefined, with nothing done, if it is to be served. */
export function begun(parts: QuickParts, request: ToolRequest): Cancel | undefined {
  const { client, params, from } = request;
  const { inlineBytes, actor } = parts.settings();
  const wanted = wantedBy(params, parts);
  if (wanted === undefined || inlineBytes > 0) return undefined;
  const about = { mcpReq: { envelope: from.envelope } };
  const capabilities = capabilitiesOf(about, client.peer.getClientCapabilities());
  // What may become a task is known to those who keep tasks.
  const isTask = client.isModern && wanted.via === "tools/call" && takes({ capabilities });
  if (isTask) return undefined;
  const name = clientNameOf(about, client.peer);
  const toolset = () => parts.settings().toolsetFor?.(name);
  const call = new QuickAnswer(parts, { ...request, name, wanted, capabilities, toolset });
  const agrees = wanted.via === "tools/call" ? agreesWith(from, wanted) : undefined;
  const cancel = parts.begin({
    ...{ ...wanted, actor, request: from.id, toolset, back: call },
    ...agrees && { agrees },
    again: () => {
      parts.serve({ client, params, context: from.context() }).then(from.answered, from.failed);
    },
  });
  if (cancel === undefined) return undefined;
  client.capabilities = capabilities;
  return call.cancel = cancel;
}

/** Returns what throws if the headers of a call say something else than its arguments. */
function agreesWith({ headers }: QuickContext, { arguments: args }: Wanted): Call["agrees"] {
  return headers && ((tool) => assertSameHeaders(tool, { args, headers }));
}

/** Returns the call that a request wants; undefined if there is anything unusual about it. */
function wantedBy(params: JsonObject, { idOf, namedId }: QuickParts): Wanted | undefined {
  const { name, arguments: args = {}, ...more } = params;
  if (typeof name !== "string" || !isObject(args) || hasAny(more)) return undefined;
  const own = args as JsonObject;
  if (!isMetaTool(name)) {
    const id = idOf(name);
    return id && { id, arguments: own, via: "tools/call" };
  }
  const { tool, arguments: inner = {}, ...rest } = own;
  if (name !== "call" || typeof tool !== "string" || !isObject(inner) || hasAny(rest)) {
    return undefined;
  }
  const id = namedId(tool);
  return id && { id, arguments: inner as JsonObject, via: "call" };
}

function hasAny(object: object): boolean {
  for (const _ in object) return true;
  return false;
}

/** A request whose call runs. */
interface Running extends ToolRequest, Pick<ClientRequest, "capabilities" | "toolset"> {
  readonly wanted: Wanted;
  /** The name of the client. */
  readonly name: string;
}

/** The answer to a request whose call runs. */
class QuickAnswer {
  readonly #parts: QuickParts;
  readonly #request: Running;
  /** Set if the server asked for a way to the client: that decides what is answered first. */
  #over: PromiseWithResolvers<JsonObject> | undefined;
  cancel: Cancel = () => {};

  constructor(parts: QuickParts, request: Running) {
    this.#parts = parts;
    this.#request = request;
  }

  answered(outcome: Outcome): void {
    try {
      const seen = this.#parts.linked(this.#request.wanted, outcome);
      // No question comes of a call that passed already.
      if (seen.kind === "result") this.#said(seen.result);
    } catch (error) {
      this.#refuse(error);
    }
  }

  failed(error: unknown): void {
    // The model wrote what `call` gets: it is the one to mend it.
    if (this.#request.wanted.via === "call") this.#said(errorResult(error));
    else this.#refuse(error);
  }

  ways(): Meanwhile {
    const { client, params, from, capabilities, toolset } = this.#request;
    const over = this.#over ??= Promise.withResolvers();
    const request = { client, params, context: from.context(), capabilities, toolset };
    const { ways, answer } = this.#parts.exchange.later(request, {
      over: over.promise,
      cancel: (reason) => this.cancel(reason),
    });
    answer.then((result) => this.#answer(result), (error) => this.#refused(error));
    return ways;
  }

  #said(result: ToolResult): void {
    // A result is plain JSON.
    const plain = result as unknown as JsonObject;
    const answer = this.#parts.forClient(this.#request, plain);
    if (this.#over !== undefined) this.#over.resolve(answer);
    else this.#answer(answer);
  }

  #refuse(error: unknown): void {
    if (this.#over !== undefined) this.#over.reject(error);
    else this.#refused(error);
  }

  #refused(error: unknown): void {
    try {
      this.#answer(this.#parts.forClient(this.#request, failed(error)));
    } catch (refused) {
      this.#request.from.failed(refusal(refused));
    }
  }

  #answer(answer: JsonObject): void {
    const { wanted: { via }, from } = this.#request;
    this.#parts.metrics.answered(via, answer);
    from.answered(answer);
  }
}
