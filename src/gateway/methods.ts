/**
 * The methods of MCP, each with its handler. The connection itself answers `initialize`, `ping`,
 * `server/discover` and `subscriptions/listen` (`protocol/`). Other methods are passed on to the
 * server that owns them (`_unknown_methods.ts`).
 *
 * @module
 */

import { isObject, type JsonObject, objectOf } from "../core/json.ts";
import { LEVELS } from "../protocol/levels.ts";
import type { ListName } from "../protocol/lists.ts";
import type { Client, Clients } from "./_clients.ts";
import type { Following } from "./_following.ts";
import type { Offers } from "./_offers.ts";
import { resultFor, toolForModernClient, toolForOlderClient } from "./_older_results.ts";
import { isKept, isOwn, readKept, readOwn } from "./_own_resources.ts";
import { invalid, optionalText, text } from "./_params.ts";
import type { ServerRequests, Wanted } from "./_server_requests.ts";
import type { Tasks } from "./_tasks.ts";
import type { ToolCalls } from "./_tool_calls.ts";
import { exposed, listsServers } from "./exposure.ts";
import type { ClientRequest } from "./interaction/client_request.ts";
import { type GatewayOptions, optionsWithin } from "./options.ts";
import type { RenderedLists } from "./rendered_lists.ts";
import { refusal } from "../protocol/failures.ts";

/** The parts of the gateway that handlers use. */
export interface GatewayParts {
  readonly options: GatewayOptions;
  readonly clients: Clients;
  readonly offers: Offers;
  readonly rendered: RenderedLists;
  readonly requests: ServerRequests;
  readonly following: Following;
  readonly tasks: Tasks;
  readonly toolCalls: ToolCalls;
}

/** Returns the result of a request. Rejects with the error for the client. */
type Handler = (request: ClientRequest, parts: GatewayParts) => Promise<JsonObject>;

/** The handlers by method. `protocol/revisions.ts` has the revisions of each method. */
const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ["tools/list", listTools],
  ["tools/call", (request, { toolCalls }) => toolCalls.call(request)],
  ["resources/list", listOf("resources")],
  ["resources/templates/list", listOf("resourceTemplates")],
  ["resources/read", readResource],
  ["resources/subscribe", subscribe],
  ["resources/unsubscribe", unsubscribe],
  ["prompts/list", listOf("prompts")],
  ["prompts/get", getPrompt],
  ["completion/complete", complete],
  ["logging/setLevel", setLevel],
  ["tasks/get", serveTask],
  ["tasks/result", serveTask],
  ["tasks/list", serveTask],
  ["tasks/cancel", serveTask],
  ["tasks/update", serveTask],
]);

/** How long a client may cache a list, in milliseconds: the rules may change it. */
const TTL_MS = 5_000;

/** Serves a request by the handler of its method. Rejects with the JSON-RPC error for the client. */
export function dispatch(request: ClientRequest, parts: GatewayParts): Promise<JsonObject> {
  const handler = HANDLERS.get(request.context.method) ?? passOn;
  return handler(request, parts).catch(refuse);
}

function refuse(error: unknown): never {
  throw refusal(error);
}

async function passOn(
  request: ClientRequest,
  { requests, offers, tasks, options: { servers } }: GatewayParts,
): Promise<JsonObject> {
  return await requests.passOn(request, { offers, tasks, servers });
}

async function listTools(
  { client, params, toolset }: ClientRequest,
  { options, rendered }: GatewayParts,
): Promise<JsonObject> {
  const { servers, settings, metrics } = options;
  // `query` is an extension of MCP: a client may state the purpose of its tools.
  const query = optionalText(params, "query");
  const items = (await exposed(settings(), { ...optionsWithin(options, toolset), rendered, query }))
    .map(client.isModern ? toolForModernClient : toolForOlderClient);
  const isComplete = !listsServers(settings(), query) || servers.lists.isComplete("tools");
  const page = rendered.page({ name: "tools", items, about: about(client, isComplete) }, params);
  metrics.answered(`tools/list ${settings().exposure}`, page);
  return page;
}

/** Returns the handler of a list of servers' own names. */
function listOf(list: Exclude<ListName, "tools">): Handler {
  return async ({ client, params, toolset }, { options, offers, rendered }) => {
    const { problem, judge, servers } = optionsWithin(options, toolset);
    const items = problem() === undefined ? await offers.list(list, judge) : [];
    const isComplete = servers.lists.isComplete(list);
    return rendered.page({ name: list, items, about: about(client, isComplete) }, params);
  };
}

/** Returns how long a client may cache a list. An incomplete one changes soon. */
function about({ isModern }: Client, isComplete: boolean): JsonObject {
  return isModern ? { ttlMs: isComplete ? TTL_MS : 0, cacheScope: "private" } : {};
}

async function readResource(request: ClientRequest, parts: GatewayParts): Promise<JsonObject> {
  const { params } = request;
  const { options, offers } = parts;
  if (isOwn(params.uri)) return await readOwn(params.uri, options);
  if (isKept(params.uri)) return await readKept(params.uri, options);
  return await ask(request, await resourceAt(offers, params), parts);
}

async function getPrompt(request: ClientRequest, parts: GatewayParts): Promise<JsonObject> {
  return await ask(request, await promptAt(parts.offers, request.params), parts);
}

async function complete(request: ClientRequest, parts: GatewayParts): Promise<JsonObject> {
  const { params } = request;
  if (!isObject(params.ref)) throw invalid("ref must be an object");
  const ref = objectOf(params.ref);
  const placeOf = ref.type === "ref/prompt" ? promptAt : resourceAt;
  const place = await placeOf(parts.offers, ref);
  return await ask(request, { ...place, params: { ...params, ref: place.params } }, parts);
}

/** Asks a server. Returns the result in the form that the client's revision has. */
async function ask(
  request: ClientRequest,
  place: Omit<Wanted, "method">,
  { requests }: GatewayParts,
): Promise<JsonObject> {
  const { method } = request.context;
  return resultFor(request.client, await requests.ask(request, { ...place, method }));
}

/** Finds the server of a prompt. The params have the name that the server gave it. */
async function promptAt(offers: Offers, params: JsonObject): Promise<Omit<Wanted, "method">> {
  const { server, name } = await offers.prompt(text(params, "name"));
  return { door: "@prompts", server, params: { ...params, name } };
}

/** Finds the server of a resource. The params have the URI that the server gave it. */
async function resourceAt(offers: Offers, params: JsonObject): Promise<Omit<Wanted, "method">> {
  const place = await offers.resource(text(params, "uri"));
  const { server, name } = place;
  const isOffered = await offers.isOffered(place);
  return { door: "@resources", server, params: { ...params, uri: name }, isOffered };
}

async function subscribe(
  request: ClientRequest,
  { following }: GatewayParts,
): Promise<JsonObject> {
  await following.subscribe(request, text(request.params, "uri"));
  return {};
}

async function unsubscribe(
  { client, params }: ClientRequest,
  { following }: GatewayParts,
): Promise<JsonObject> {
  await following.unsubscribe(client, params.uri);
  return {};
}

function setLevel(
  { client, params }: ClientRequest,
  { options, clients }: GatewayParts,
): Promise<JsonObject> {
  return Promise.try(() => {
    const level = text(params, "level");
    if (!LEVELS.includes(level)) throw invalid(`level must be one of ${LEVELS.join(", ")}`);
    client.level = level;
    options.setLevel(clients.level());
    return {};
  });
}

async function serveTask(request: ClientRequest, { tasks }: GatewayParts): Promise<JsonObject> {
  return await tasks.serve(request);
}
