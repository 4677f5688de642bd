/**
 * The handlers of the methods of MCP, except lists: calls of tools, resources, skills, prompts,
 * completions and tasks.
 *
 * @module
 */

import { isPage } from "../protocol/apps.ts";
import { isObject, type Json, type JsonObject, objectOf } from "../core/json.ts";
import { DIRECTORY_READ } from "../protocol/skills.ts";
import type { FollowedResources } from "./_followed_resources.ts";
import type { ForwardedRequest, ForwardedRequests } from "./_forwarded_requests.ts";
import type { Offers, ServerItem } from "./_offers.ts";
import { adaptResult } from "./_older_results.ts";
import {
  isOwnResource,
  isStoredOutput,
  readOwnResource,
  readStoredOutput,
} from "./_own_resources.ts";
import { invalidParams, requiredText } from "./_params.ts";
import { addressesOf, checkSkill, limitToDirectory, withAddresses } from "./_skills.ts";
import type { Tasks } from "./_tasks.ts";
import type { ToolCalls } from "./_tool_calls.ts";
import type { ClientRequest } from "./interaction/request_client.ts";
import type { GatewayHost } from "./options.ts";

/** The parts that handlers use. */
export interface RequestParts {
  readonly host: GatewayHost;
  readonly offers: Offers;
  readonly requests: ForwardedRequests;
  readonly followedResources: FollowedResources;
  readonly tasks: Tasks;
  readonly toolCalls: ToolCalls;
}

/** Returns the result of a request. Rejects with the error for the client. */
type Handler = (request: ClientRequest, parts: RequestParts) => Promise<JsonObject>;

/** The handlers by method. `methods.ts` has those of the lists. */
export const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ["tools/call", (request, { toolCalls }) => toolCalls.call(request)],
  ["resources/read", readResource],
  ["skills/get", getSkill],
  [DIRECTORY_READ, readDirectory],
  ["resources/subscribe", subscribe],
  ["resources/unsubscribe", unsubscribe],
  ["prompts/get", getPrompt],
  ["completion/complete", complete],
  ["tasks/get", serveTask],
  ["tasks/result", serveTask],
  ["tasks/list", serveTask],
  ["tasks/cancel", serveTask],
  ["tasks/update", serveTask],
]);

async function readResource(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  const { params, context: { cancellation } } = request;
  const { host, offers } = parts;
  if (isOwnResource(params.uri)) return await readOwnResource(params.uri, host);
  if (isStoredOutput(params.uri)) {
    return await readStoredOutput(params.uri, cancellation.signal, host);
  }
  const place = await findResource(offers, params);
  const answer = await forward(request, place, parts);
  const result = withAddresses(answer, { place, params, offers });
  return withRequestedPage(result, { uri: params.uri, listedUri: offers.uriOf(place) });
}

/**
 * Returns the result of `resources/read` for a page (`ui://…`). Its content has the address that the
 * client sent: `uri`, which may be the server's own address in place of `listedUri`, the address in
 * PML's lists.
 */
function withRequestedPage(
  result: JsonObject,
  { uri, listedUri }: { readonly uri: Json | undefined; readonly listedUri: string },
): JsonObject {
  const { contents } = result;
  if (!isPage(uri) || uri === listedUri || !Array.isArray(contents)) return result;
  const all = contents.map((content) =>
    objectOf(content).uri === listedUri ? { ...objectOf(content), uri } : content
  );
  return { ...result, contents: all };
}

async function getSkill(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  const { params } = request;
  const { offers } = parts;
  // The rules for skills apply to addresses of every scheme.
  const place = { ...await findResource(offers, params), ruleName: "@skills" };
  const answer = await forward(request, place, parts);
  if (asksForInput(answer)) return answer;
  const result = checkSkill(answer, place);
  for (const uri of addressesOf(result)) offers.recordLink(place.server, uri);
  return withAddresses(result, { place, params, offers });
}

async function readDirectory(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  const { params } = request;
  const { offers } = parts;
  const place = await findResource(offers, params);
  const answer = await forward(request, place, parts);
  if (asksForInput(answer)) return answer;
  return withAddresses(limitToDirectory(answer, place), { place, params, offers });
}

/** Returns whether the answer asks the client for input. Servers cannot set this member. */
function asksForInput({ resultType }: JsonObject): boolean {
  return resultType === "input_required";
}

async function getPrompt(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  return await forward(request, await findPrompt(parts.offers, request.params), parts);
}

async function complete(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  const { params } = request;
  if (!isObject(params.ref)) throw invalidParams("ref must be an object");
  const ref = objectOf(params.ref);
  const findPlace = ref.type === "ref/prompt" ? findPrompt : findResource;
  const place = await findPlace(parts.offers, ref);
  return await forward(request, { ...place, params: { ...params, ref: place.params } }, parts);
}

/** Sends a request to a server. Returns the result in the form of the client's revision. */
async function forward(
  request: ClientRequest,
  place: Omit<ForwardedRequest, "method">,
  { requests }: RequestParts,
): Promise<JsonObject> {
  const { method } = request.context;
  return adaptResult(request.client, await requests.send(request, { ...place, method }));
}

/** Finds the server of a prompt. The returned params have the server's own name of the prompt. */
async function findPrompt(
  offers: Offers,
  params: JsonObject,
): Promise<Omit<ForwardedRequest, "method">> {
  const { server, name } = await offers.findPrompt(requiredText(params, "name"));
  return { ruleName: "@prompts", server, params: { ...params, name } };
}

/** Finds the server of a resource. The returned params have the server's own URI. */
async function findResource(
  offers: Offers,
  params: JsonObject,
): Promise<Omit<ForwardedRequest, "method"> & ServerItem> {
  const place = await offers.findResource(requiredText(params, "uri"));
  const { server, name } = place;
  const isOffered = await offers.isOffered(place);
  return {
    ruleName: offers.ruleNameOf(place),
    server,
    name,
    params: { ...params, uri: name },
    isOffered,
  };
}

async function subscribe(
  request: ClientRequest,
  { followedResources }: RequestParts,
): Promise<JsonObject> {
  await followedResources.subscribe(request, requiredText(request.params, "uri"));
  return {};
}

async function unsubscribe(
  { client, params }: ClientRequest,
  { followedResources }: RequestParts,
): Promise<JsonObject> {
  await followedResources.unsubscribe(client, params.uri);
  return {};
}

async function serveTask(request: ClientRequest, { tasks }: RequestParts): Promise<JsonObject> {
  return await tasks.serve(request);
}
