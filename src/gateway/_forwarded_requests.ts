/**
 * Passes requests of clients on to their servers, with the names that the servers use.
 *
 * @module
 */

import { type CallTool, NO_CLIENT, type Outcome } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { type JsonObject, withoutUndefined } from "../core/json.ts";
import { methodRuleName } from "../core/pattern.ts";
import { toolId } from "../core/tool_id.ts";
import { ERROR, RpcError } from "../protocol/errors.ts";
import { isDefinedMethod } from "../protocol/revisions.ts";
import { splitRequestMembers } from "./_call_members.ts";
import type { GatewayHost } from "./options.ts";
import { findTarget, type TargetSources } from "./_unknown_methods.ts";
import type { ClientRequest, RequestScope } from "./interaction/request_client.ts";
import type { Interaction } from "./interaction/interaction.ts";

/** A request that PML sends to a server for a client, other than `tools/call`. */
export interface ForwardedRequest {
  /** The name by which rules match the request; for requests about a task, the task's tool. */
  readonly ruleName: string;
  readonly server: string;
  readonly method: string;
  readonly params: JsonObject;
  /** Whether the server listed or linked the address, or one of its templates covers it. */
  readonly isOffered?: boolean;
  /** The other members of the client's message, next to `params`. */
  readonly members?: JsonObject | undefined;
}

/** The scope of a call that belongs to no request of a client. */
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

  /** Sends a request for a client. Until it ends, the server and PML can ask the client for input. */
  async send(request: ClientRequest, forwarded: ForwardedRequest): Promise<JsonObject> {
    return await this.#interaction.serve(request, (scope) => {
      const { members } = request.context;
      return this.#sendToServer(
        members === undefined ? forwarded : { ...forwarded, members },
        scope,
      );
    });
  }

  /** Passes on a request whose method PML does not know. Rules name it `@method(NAME)`. */
  async passOn(
    request: ClientRequest,
    owners: TargetSources,
  ): Promise<JsonObject> {
    const { client, context: { method }, params } = request;
    const ruleName = isDefinedMethod(method) ? undefined : methodRuleName(method);
    if (ruleName === undefined) throw new RpcError(ERROR.methodNotFound, "Method not found");
    const target = await findTarget({ method, params, client }, owners);
    return await this.send(request, { ruleName, method, ...target });
  }

  /**
   * Sends a request for which no client can be asked for input. If the request needs an approval,
   * stores the approval request for the terminal, and throws.
   */
  async sendWithoutInput(forwarded: ForwardedRequest, scope = NO_REQUEST): Promise<JsonObject> {
    const outcome = await this.#sendToServer(forwarded, scope);
    if (outcome.kind === "ask") throw await this.#host.storeQuestion(outcome.question);
    return outcome.result as unknown as JsonObject; // plain JSON
  }

  async #sendToServer(forwarded: ForwardedRequest, scope: RequestScope): Promise<Outcome> {
    const { ruleName, server, method, params, members: message, isOffered = false } = forwarded;
    const { _meta, ...rest } = params;
    const problem = this.#host.configProblem();
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
      ...splitRequestMembers(_meta, clientMeta, message),
      ...withoutUndefined({ answer }),
    });
  }
}
