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
import type { Clients } from "./_clients.ts";
import type { DroppedMembers } from "./_dropped_members.ts";
import { ResourceFollowing } from "./_following.ts";
import { HANDLERS, type RequestParts } from "./_handlers.ts";
import type { Offers } from "./_offers.ts";
import { resultFor } from "./_older_results.ts";
import { isOwnSkill } from "./_own_resources.ts";
import { ForwardedRequests } from "./_forwarded_requests.ts";
import { Tasks } from "./_tasks.ts";
import { ToolCalls } from "./_tool_calls.ts";
import { UnknownNotifications } from "./_unknown_notifications.ts";
import type { ClientRequest } from "./interaction/client_request.ts";
import { Interaction, type SealedStates } from "./interaction/interaction.ts";
import type { GatewayHost } from "./options.ts";

/** The options of `Requests`. */
export interface RequestsOptions {
  readonly options: GatewayHost;
  readonly clients: Clients;
  readonly offers: Offers;
  /** Reports the members of messages that clients do not get. */
  readonly dropped: DroppedMembers;
  /** Set if PML has several processes. */
  readonly replica: () => SealedStates | undefined;
}

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

  /** Takes the options; passes nothing on yet. */
  constructor({ options: host, clients, offers, dropped, replica }: RequestsOptions) {
    const { servers } = host;
    const callTool: CallTool = (call) => this.#callInOrder(host, call);
    const options: GatewayHost = { ...host, callTool };
    const interaction = this.interaction = new Interaction({ ...options, replica, dropped });
    const requests = new ForwardedRequests({ ...options, interaction });
    const shared = { ...options, replica, clients, offers, requests };
    const tasks = this.tasks = new Tasks(shared);
    const following = this.following = new ResourceFollowing(shared);
    const toolCalls = this.toolCalls = new ToolCalls(options, interaction, tasks);
    this.#parts = { options, offers, requests, following, tasks, toolCalls };
    const owners = { offers, servers, tasks };
    this.notifications = new UnknownNotifications({ ...options, clients, owners });
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
  #callInOrder({ settings, callTool }: GatewayHost, call: Call): Promise<Outcome> {
    const { actor } = settings();
    // Requests of servers have the actor "local".
    const own = call.actor === actor ? call : changedCall(call, { actor });
    return callTool(own).then((outcome) => this.#ordered(call, outcome));
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
  { requests, offers, tasks, options: { servers } }: RequestParts,
): Promise<JsonObject> {
  return await requests.passOn(request, { offers, tasks, servers });
}
