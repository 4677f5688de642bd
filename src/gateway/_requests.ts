/**
 * Serves all methods except lists: calls of tools, requests to servers, tasks, and input of
 * clients. PML loads this file with the first such request, so that its start and the first lists do
 * not wait for the file. Methods that no revision defines go to the server that owns them (`_unknown_methods.ts`).
 *
 * @module
 */

import {
  type Call,
  type CallTool,
  changeCall,
  type ContentBlock,
  type Outcome,
} from "../protocol/call.ts";
import { type JsonObject, objectOf } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import { splitToolId } from "../core/tool_id.ts";
import { FollowedResources } from "./_followed_resources.ts";
import { HANDLERS, type RequestParts } from "./_handlers.ts";
import { adaptResult } from "./_older_results.ts";
import { isOwnSkill } from "./_own_resources.ts";
import { ForwardedRequests } from "./_forwarded_requests.ts";
import { Tasks } from "./_tasks.ts";
import { ToolCaller } from "./_tool_caller.ts";
import { ToolCalls } from "./_tool_calls.ts";
import { UnknownNotifications } from "./_unknown_notifications.ts";
import type { ClientRequest } from "./interaction/request_client.ts";
import { Interaction, type RequestGateway } from "./interaction/interaction.ts";
import type { GatewayHost } from "./options.ts";

/** The methods, besides calls of tools, whose results may contain addresses of pages. */
const METHODS_WITH_PAGES = ["resources/read", "prompts/get", "tasks/get", "tasks/result"];

/** Serves all requests except lists, and keeps their tasks and approval requests. */
export class Requests implements Disposable {
  /** The tasks that clients began. */
  readonly tasks: Tasks;
  /** The resources that clients subscribe to. */
  readonly followedResources: FollowedResources;
  /** Passes on notifications whose methods no revision defines. */
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
    const followedResources = this.followedResources = new FollowedResources(
      host,
      gateway,
      requests,
    );
    const caller = new ToolCaller(host, callTool);
    const toolCalls = this.toolCalls = new ToolCalls(host, { caller, interaction, tasks });
    this.#parts = { host, offers, requests, followedResources, tasks, toolCalls };
    const sources = { offers, servers: host.servers, tasks };
    this.notifications = new UnknownNotifications(host, callTool, { clients, sources });
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

  /** Makes a call. Resolves after the notifications that the server sent before the outcome. */
  #callInOrder(host: GatewayHost, call: Call): Promise<Outcome> {
    const { actor } = host.settings();
    // Requests of servers have the actor "local". They get the actor of this gateway.
    const callOfActor = call.actor === actor ? call : changeCall(call, { actor });
    return host.callTool(callOfActor).then((outcome) => this.#afterNotifications(call, outcome));
  }

  /** Waits until the notifications that the server sent before an outcome are passed on. */
  #afterNotifications(call: Call, outcome: Outcome): Maybe<Outcome> {
    if (outcome.kind !== "result") return outcome;
    const { server } = splitToolId(call.id);
    const recorded = this.#recordOutcome(call, server, outcome);
    const pending = call.isNotification === true ? undefined : this.notifications.pendingOf(server);
    return pending === undefined ? recorded : pending.then(() => recorded);
  }

  /**
   * Records the task that a call began, or the resources that its result links, so that clients may
   * read them. Replaces the addresses of pages by the addresses of PML's lists.
   */
  #recordOutcome(
    call: Pick<Call, "method" | "task">,
    server: string,
    outcome: Extract<Outcome, { readonly kind: "result" }>,
  ): Outcome {
    const { offers } = this.#parts;
    const { method } = call;
    if (method === "prompts/get") {
      offers.recordLinks(server, contentOf(outcome.result as unknown as JsonObject));
    }
    if (method !== undefined) {
      return METHODS_WITH_PAGES.includes(method) ? offers.withPages(server, outcome) : outcome;
    }
    if (outcome.task !== undefined) return this.tasks.begin(call as Call, outcome);
    offers.recordLinks(server, outcome.result.content);
    return offers.withPages(server, outcome);
  }
}

/** Returns the content of a prompt's messages. */
function contentOf({ messages }: JsonObject): readonly ContentBlock[] {
  const all = Array.isArray(messages) ? messages : [];
  return all.map((one) => objectOf(objectOf(one).content))
    .filter(({ type }) => typeof type === "string") as unknown as readonly ContentBlock[];
}

/** Serves requests for the skill of PML itself. No rule applies to PML's own resources. */
async function serveOwnSkill(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  const { client, params, context: { method } } = request;
  const { ownSkillAnswer } = await import("./_own_skill.ts");
  const answer = ownSkillAnswer(method, params.uri);
  if (answer !== undefined) return adaptResult(client, answer);
  return await (HANDLERS.get(method) ?? passOn)(request, parts);
}

async function passOn(
  request: ClientRequest,
  { requests, offers, tasks, host: { servers } }: RequestParts,
): Promise<JsonObject> {
  return await requests.passOn(request, { offers, tasks, servers });
}
