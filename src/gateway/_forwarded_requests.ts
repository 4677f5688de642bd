/**
 * Passes requests of clients on to their servers, with the names that the servers use.
 *
 * @module
 */

import { type CallTool, NO_CLIENT, type Outcome } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { defined, type JsonObject } from "../core/json.ts";
import { methodRuleName } from "../core/pattern.ts";
import { toolId } from "../core/tool_id.ts";
import { ERROR, RpcError } from "../protocol/errors.ts";
import { isDefined } from "../protocol/revisions.ts";
import { metaOf } from "./_call_members.ts";
import type { GatewayHost } from "./options.ts";
import { type Owners, serverOfRequest } from "./_unknown_methods.ts";
import type { ClientRequest, RequestScope } from "./interaction/client_request.ts";
import type { Interaction } from "./interaction/interaction.ts";

/** A request to a server other than a call of a tool. */
export interface ForwardedRequest {
  /** The name that rules have for the method, or the tool whose task the request is about. */
  readonly ruleName: string;
  readonly server: string;
  readonly method: string;
  readonly params: JsonObject;
  /** Whether the server listed or linked the address that is read, or a template covers it. */
  readonly isOffered?: boolean;
  /** The other members of the client's message, next to `params`. */
  readonly members?: JsonObject | undefined;
}

/** The scope of calls that no request waits for. */
const NO_REQUEST: RequestScope = {
  cancellation: new Cancellation(),
  client: NO_CLIENT,
  answer: undefined,
};

/** Passes requests to servers, each as a call through all checks. */
export class ForwardedRequests {
  readonly #host: GatewayHost;
  readonly #callTool: CallTool;
  readonly #interaction: Interaction;

  /** Takes the collaborators. Sends nothing yet. */
  constructor(host: GatewayHost, callTool: CallTool, interaction: Interaction) {
    this.#host = host;
    this.#callTool = callTool;
    this.#interaction = interaction;
  }

  /** Sends a request for a client, which can be asked for input meanwhile. */
  async ask(request: ClientRequest, forwarded: ForwardedRequest): Promise<JsonObject> {
    return await this.#interaction.serve(request, (scope) => {
      const { members } = request.context;
      return this.#pass(members === undefined ? forwarded : { ...forwarded, members }, scope);
    });
  }

  /** Passes on a request whose method PML does not know. The rules know it as `@method(NAME)`. */
  async passOn(
    request: ClientRequest,
    owners: Owners,
  ): Promise<JsonObject> {
    const { client, context: { method }, params } = request;
    const ruleName = isDefined(method) ? undefined : methodRuleName(method);
    if (ruleName === undefined) throw new RpcError(ERROR.methodNotFound, "Method not found");
    const target = await serverOfRequest({ method, params, client }, owners);
    return await this.ask(request, { ruleName, method, ...target });
  }

  /** Sends a request for a client that cannot be asked for input meanwhile, or for no client. */
  async askAlone(forwarded: ForwardedRequest, scope = NO_REQUEST): Promise<JsonObject> {
    const outcome = await this.#pass(forwarded, scope);
    if (outcome.kind === "ask") throw await this.#host.leave(outcome.question);
    return outcome.result as unknown as JsonObject; // plain JSON
  }

  async #pass(forwarded: ForwardedRequest, scope: RequestScope): Promise<Outcome> {
    const { ruleName, server, method, params, members: message, isOffered = false } = forwarded;
    const { _meta, ...rest } = params;
    const problem = this.#host.problem();
    if (problem !== undefined) throw problem;
    const { actor, clientMeta } = this.#host.settings();
    const { answer, cancellation, client } = scope;
    return await this.#callTool({
      id: toolId(server, ruleName),
      method,
      isOffered,
      arguments: rest,
      via: method,
      actor,
      callId: crypto.randomUUID(),
      cancellation,
      client,
      ...metaOf(_meta, clientMeta, message),
      ...defined({ answer }),
    });
  }
}
