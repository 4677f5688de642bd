/**
 * The handlers of the methods of MCP, except lists: calls of tools, resources, skills, prompts,
 * completions and tasks.
 *
 * @module
 */

import { isPage } from "../protocol/apps.ts";
import { isObject, type Json, type JsonObject, objectOf } from "../core/json.ts";
import { DIRECTORY_READ } from "../protocol/skills.ts";
import type { ResourceFollowing } from "./_following.ts";
import type { ForwardedRequest, ForwardedRequests } from "./_forwarded_requests.ts";
import type { Offers, ServerItem } from "./_offers.ts";
import { resultFor } from "./_older_results.ts";
import { isKept, isOwnResource, readOwn, readStoredOutput } from "./_own_resources.ts";
import { invalidParams, requiredText } from "./_params.ts";
import { addressesOf, checkedSkill, withAddresses, withinDirectory } from "./_skills.ts";
import type { Tasks } from "./_tasks.ts";
import type { ToolCalls } from "./_tool_calls.ts";
import type { ClientRequest } from "./interaction/client_request.ts";
import type { GatewayHost } from "./options.ts";

/** The parts that handlers use. */
export interface RequestParts {
  readonly host: GatewayHost;
  readonly offers: Offers;
  readonly requests: ForwardedRequests;
  readonly following: ResourceFollowing;
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
  if (isOwnResource(params.uri)) return await readOwn(params.uri, host);
  if (isKept(params.uri)) return await readStoredOutput(params.uri, cancellation.signal, host);
  const place = await resourceAt(offers, params);
  const answer = await ask(request, place, parts);
  const result = withAddresses(answer, { place, params, offers });
  return withRequestedPage(result, { uri: params.uri, place: offers.uriOf(place) });
}

/**
 * Returns the result of reading a page with the address that the client sent: it may be the
 * server's own, which is not that of PML's lists.
 */
function withRequestedPage(
  result: JsonObject,
  { uri, place }: { readonly uri: Json | undefined; readonly place: string },
): JsonObject {
  const { contents } = result;
  if (!isPage(uri) || uri === place || !Array.isArray(contents)) return result;
  const all = contents.map((one) => objectOf(one).uri === place ? { ...objectOf(one), uri } : one);
  return { ...result, contents: all };
}

async function getSkill(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  const { params } = request;
  const { offers } = parts;
  // The rules for skills apply whatever scheme the address has.
  const place = { ...await resourceAt(offers, params), ruleName: "@skills" };
  const answer = await ask(request, place, parts);
  if (isQuestion(answer)) return answer;
  const result = checkedSkill(answer, place);
  for (const uri of addressesOf(result)) offers.linkTo(place.server, uri);
  return withAddresses(result, { place, params, offers });
}

async function readDirectory(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  const { params } = request;
  const { offers } = parts;
  const place = await resourceAt(offers, params);
  const answer = await ask(request, place, parts);
  if (isQuestion(answer)) return answer;
  return withAddresses(withinDirectory(answer, place), { place, params, offers });
}

/** Returns whether PML asks the client first. Servers cannot set this member. */
function isQuestion({ resultType }: JsonObject): boolean {
  return resultType === "input_required";
}

async function getPrompt(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  return await ask(request, await promptAt(parts.offers, request.params), parts);
}

async function complete(request: ClientRequest, parts: RequestParts): Promise<JsonObject> {
  const { params } = request;
  if (!isObject(params.ref)) throw invalidParams("ref must be an object");
  const ref = objectOf(params.ref);
  const placeOf = ref.type === "ref/prompt" ? promptAt : resourceAt;
  const place = await placeOf(parts.offers, ref);
  return await ask(request, { ...place, params: { ...params, ref: place.params } }, parts);
}

/** Asks a server. Returns the result in the form that the client's revision has. */
async function ask(
  request: ClientRequest,
  place: Omit<ForwardedRequest, "method">,
  { requests }: RequestParts,
): Promise<JsonObject> {
  const { method } = request.context;
  return resultFor(request.client, await requests.ask(request, { ...place, method }));
}

/** Finds the server of a prompt. The params have the name that the server gave it. */
async function promptAt(
  offers: Offers,
  params: JsonObject,
): Promise<Omit<ForwardedRequest, "method">> {
  const { server, name } = await offers.prompt(requiredText(params, "name"));
  return { ruleName: "@prompts", server, params: { ...params, name } };
}

/** Finds the server of a resource. The params have the URI that the server gave it. */
async function resourceAt(
  offers: Offers,
  params: JsonObject,
): Promise<Omit<ForwardedRequest, "method"> & ServerItem> {
  const place = await offers.resource(requiredText(params, "uri"));
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
  { following }: RequestParts,
): Promise<JsonObject> {
  await following.subscribe(request, requiredText(request.params, "uri"));
  return {};
}

async function unsubscribe(
  { client, params }: ClientRequest,
  { following }: RequestParts,
): Promise<JsonObject> {
  await following.unsubscribe(client, params.uri);
  return {};
}

async function serveTask(request: ClientRequest, { tasks }: RequestParts): Promise<JsonObject> {
  return await tasks.serve(request);
}
