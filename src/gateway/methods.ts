/**
 * Handles the methods that clients use right after a start. The first request with any other method
 * loads `_requests.ts`. The connection itself answers `initialize`, `ping`, `server/discover` and
 * `subscriptions/listen` (`protocol/`).
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import { showsPages } from "../protocol/apps.ts";
import { LEVELS } from "../protocol/levels.ts";
import type { ListName } from "../protocol/lists.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { Client, Clients } from "./_clients.ts";
import type { Offers } from "./_offers.ts";
import { toolForOlderClient, toolForStatelessClient } from "./_older_results.ts";
import { invalidParams, optionalText, requiredText } from "./_params.ts";
import type { Requests } from "./_requests.ts";
import { isRankedByQuery, listsServerTools, type RecentTools, selectTools } from "./exposure.ts";
import type { ClientRequest } from "./interaction/request_client.ts";
import { type GatewayHost, verdictWithin } from "./options.ts";
import type { RenderedLists } from "./rendered_lists.ts";
import type { Maybe } from "../core/maybe.ts";

/** The parts of the gateway that handlers use. */
export interface GatewayParts {
  readonly host: GatewayHost;
  readonly clients: Clients;
  readonly offers: Offers;
  readonly rendered: RenderedLists;
  readonly recentTools: RecentTools;
  /** Returns the object that serves all other methods. The first use loads it. */
  readonly requests: () => Maybe<Requests>;
}

/** Returns the result of a request. */
type MethodHandler = (request: ClientRequest, parts: GatewayParts) => Promise<JsonObject>;

/** The handlers by method. `protocol/revisions.ts` has the revisions of each method. */
const LIST_HANDLERS: ReadonlyMap<string, MethodHandler> = new Map<string, MethodHandler>([
  ["tools/list", listTools],
  ["resources/list", listOf("resources")],
  ["resources/templates/list", listOf("resourceTemplates")],
  ["prompts/list", listOf("prompts")],
  ["skills/list", listOf("skills")],
  ["logging/setLevel", setLevel],
]);

/** How long a client may cache a list, in milliseconds. Short, because the rules may change. */
const LIST_CACHE_MS = 5_000;

/** Serves a request by the handler of its method. */
export function dispatch(request: ClientRequest, parts: GatewayParts): Promise<JsonObject> {
  const { method } = request.context;
  const handler = LIST_HANDLERS.get(method);
  if (handler === undefined) return serveOther(request, parts);
  const serving = handler(request, parts);
  return method.endsWith("/list") ? serving.finally(() => parts.host.onList()) : serving;
}

function serveOther(request: ClientRequest, parts: GatewayParts): Promise<JsonObject> {
  const requests = parts.requests();
  return requests instanceof Promise
    ? requests.then((loaded) => loaded.serve(request))
    : requests.serve(request);
}

async function listTools(
  { client, params, toolset, capabilities }: ClientRequest,
  { host, rendered, recentTools }: GatewayParts,
): Promise<JsonObject> {
  const { servers, metrics } = host;
  // `query` is an extension of MCP: a client may state the purpose of its tools.
  const query = optionalText(params, "query");
  const recent = isRankedByQuery(host.settings(), query) ? await recentTools.findFor(client) : [];
  const selection = { query, showsPages: showsPages(capabilities), toolset: toolset(), recent };
  const items = (await selectTools(host.settings(), host, { ...selection, rendered }))
    .map(client.isStateless ? toolForStatelessClient : toolForOlderClient);
  const isComplete = !listsServerTools(host.settings(), selection) ||
    servers.lists.isComplete("tools");
  const page = rendered.page(
    { name: "tools", items, otherMembers: cacheMembers(client, isComplete) },
    params,
  );
  metrics.countAnswer(`tools/list ${host.settings().exposure}`, page);
  return page;
}

/** Returns the handler of a list of resources, templates, prompts or skills. */
function listOf(list: Exclude<ListName, "tools">): MethodHandler {
  return async ({ client, params, toolset }, { host, offers, rendered }) => {
    const currentToolset = toolset();
    const judge = (id: ToolId) => verdictWithin(currentToolset, host, id);
    const items = host.configProblem() === undefined ? await offers.list(list, judge) : [];
    const isComplete = host.servers.lists.isComplete(list);
    return rendered.page(
      { name: list, items, otherMembers: cacheMembers(client, isComplete) },
      params,
    );
  };
}

/** Returns the members that state how long a client may cache a list: 0 for an incomplete list. */
function cacheMembers({ isStateless }: Client, isComplete: boolean): JsonObject {
  return isStateless ? { ttlMs: isComplete ? LIST_CACHE_MS : 0, cacheScope: "private" } : {};
}

function setLevel(
  { client, params }: ClientRequest,
  { host, clients }: GatewayParts,
): Promise<JsonObject> {
  return Promise.try(() => {
    const level = requiredText(params, "level");
    if (!LEVELS.includes(level)) throw invalidParams(`level must be one of ${LEVELS.join(", ")}`);
    client.level = level;
    host.setLevel(clients.level());
    return {};
  });
}
