/**
 * The methods that need more than the known lists: calls of tools, requests to servers, tasks, and
 * input of clients. The first of them loads this file, so that a start and the lists after it do
 * not wait for that. Methods that no revision has are passed on to the server that owns them
 * (`_unknown_methods.ts`).
 *
 * @module
 */

import {
  type Call,
  type CallTool,
  changedCall,
  type ContentBlock,
  type Outcome,
} from "../protocol/call.ts";
import { type JsonObject, objectOf } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import { splitToolId } from "../core/tool_id.ts";
import { ResourceFollowing } from "./_following.ts";
import { HANDLERS, type RequestParts } from "./_handlers.ts";
import { resultFor } from "./_older_results.ts";
import { isOwnSkill } from "./_own_resources.ts";
import { ForwardedRequests } from "./_forwarded_requests.ts";
import { Tasks } from "./_tasks.ts";
import { ToolCaller } from "./_tool_caller.ts";
import { ToolCalls } from "./_tool_calls.ts";
import { UnknownNotifications } from "./_unknown_notifications.ts";
import type { ClientRequest } from "./interaction/client_request.ts";
import { Interaction, type RequestGateway } from "./interaction/interaction.ts";
import type { GatewayHost } from "./options.ts";

/** The methods, besides calls of tools, whose results may contain addresses of pages. */
const HAVE_PAGES = ["resources/read", "prompts/get", "tasks/get", "tasks/result"];

/** Serves all requests except lists, and keeps their tasks and approval requests. */
export class Requests implements Disposable {
  /** The tasks that clients began. */
  readonly tasks: Tasks;
  /** The resources that clients follow. */
  readonly following: ResourceFollowing;
  /** Passes on notifications whose methods no revision has. */
  readonly notifications: UnknownNotifications;
  /** Gets input from clients. */
  readonly interaction: Interaction;
  /** Calls tools. */
  readonly toolCalls: ToolCalls;
  readonly #parts: RequestParts;

  /** Takes the host and the gateway; passes nothing on yet. */
  constructor(host: GatewayHost, gateway: RequestGateway) {
    const { clients, offers } = gateway;
    const callTool: CallTool = (call) => this.#callInOrder(host, call);
    const interaction = this.interaction = new Interaction(host, gateway, callTool);
    const requests = new ForwardedRequests(host, callTool, interaction);
    const tasks = this.tasks = new Tasks(host, interaction, requests);
    const following = this.following = new ResourceFollowing(host, gateway, requests);
    const caller = new ToolCaller(host, callTool);
    const toolCalls = this.toolCalls = new ToolCalls(host, { caller, interaction, tasks });
    this.#parts = { host, offers, requests, following, tasks, toolCalls };
    const owners = { offers, servers: host.servers, tasks };
    this.notifications = new UnknownNotifications(host, callTool, { clients, owners });
  }

  /** Serves a request. Rejects with the error for the client. */
  serve(request: ClientRequest): Promise<JsonObject> {
    if (isOwnSkill(request.params.uri)) return serveOwnSkill(request, this.#parts);
    const handler = HANDLERS.get(request.context.method) ?? passOn;
    return handler(request, this.#parts);
  }

  /** Cancels the work that waits for input of clients. */
  [Symbol.dispose](): void {
    this.interaction[Symbol.dispose]();
  }

  /** Makes a call of the gateway's user. Returns its outcome after the notifications before it. */
  #callInOrder(host: GatewayHost, call: Call): Promise<Outcome> {
    const { actor } = host.settings();
    // Requests of servers have the actor "local".
    const own = call.actor === actor ? call : changedCall(call, { actor });
    return host.callTool(own).then((outcome) => this.#ordered(call, outcome));
  }

  /** Returns an outcome after the notifications that its server sent before it. */
  #ordered(call: Call, outcome: Outcome): Maybe<Outcome> {
    if (outcome.kind !== "result") return outcome;
    const { server } = splitToolId(call.id);
    const linked = this.#linked(call, server, outcome);
    const pending = call.isNotification === true ? undefined : this.notifications.pendingOf(server);
    return pending === undefined ? linked : pending.then(() => linked);
  }

  /**
   * Remembers the resources that a result links: they may then be read. Addresses of pages become
   * those of PML's lists.
   */
  #linked(
    call: Pick<Call, "method" | "task">,
    server: string,
    outcome: Extract<Outcome, { readonly kind: "result" }>,
  ): Outcome {
    const { offers } = this.#parts;
    const { method } = call;
    if (method === "prompts/get") {
      offers.link(server, contentOf(outcome.result as unknown as JsonObject));
    }
    if (method !== undefined) {
      return HAVE_PAGES.includes(method) ? offers.withPages(server, outcome) : outcome;
    }
    if (outcome.task !== undefined) return this.tasks.begin(call as Call, outcome);
    offers.link(server, outcome.result.content);
    return offers.withPages(server, outcome);
  }
}

/** Returns the content of a prompt's messages. */
function contentOf({ messages }: JsonObject): readonly ContentBlock[] {
  const all = Array.isArray(messages) ? messages : [];
  return all.map((one) => objectOf(objectOf(one).content))
    .filter(({ type }) => typeof type === "string") as unknown as readonly ContentBlock[];
}

/** Serves requests for the skill of PML itself. They need no rule, as PML's other resources. */
async function serveOwnSkill(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  const { client, params, context: { method } } = request;
  const { ownSkillAnswer } = await import("./_own_skill.ts");
  const answer = ownSkillAnswer(method, params.uri);
  if (answer !== undefined) return resultFor(client, answer);
  return await (HANDLERS.get(method) ?? passOn)(request, parts);
}

async function passOn(
  request: ClientRequest,
  { requests, offers, tasks, host: { servers } }: RequestParts,
): Promise<JsonObject> {
  return await requests.passOn(request, { offers, tasks, servers });
}
