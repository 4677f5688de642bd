/**
 * The `_meta` that each request of the stateless revision carries.
 *
 * @module
 */

import { TASKS_EXTENSION } from "../../protocol/extension_methods.ts";
import { type JsonObject, objectOf } from "../../core/json.ts";
import { VERSION } from "../../core/version.ts";
import { isClientInfo, META } from "../../protocol/envelope.ts";
import { STATELESS_REVISION } from "../../protocol/revisions.ts";
import type { RequestOptions } from "../../protocol/rpc_peer.ts";
import { isTaskMethod } from "./_task_methods.ts";

/** The maximum length of a client's `clientInfo` as JSON, in characters. */
const INFO_MAX = 4_000;
/** The `clientInfo` of PML. */
const CLIENT = { name: "pml", version: VERSION };

/** Returns the `clientInfo` for a server: the client's if it is valid, otherwise PML's. */
export function clientInfoFor(info: JsonObject | undefined): JsonObject {
  const isUsable = isClientInfo(info) && JSON.stringify(info).length <= INFO_MAX;
  return isUsable && info !== undefined ? info : CLIENT;
}

/**
 * Adds the `_meta` of the stateless revision to the params of a request: the revision, and the
 * client's name, capabilities and log level.
 */
export function withMeta(
  params: JsonObject,
  { client: { onServerRequest, onMessage }, takesTasks }: Pick<
    RequestOptions,
    "client" | "takesTasks"
  >,
  { method = "", capabilities, clientInfo }: {
    readonly method?: string | undefined;
    readonly capabilities: JsonObject;
    readonly clientInfo: JsonObject;
  },
): JsonObject {
  // A call without a client that can answer requests declares no capabilities, so that the server
  // sends no requests. Other requests declare them, because lists depend on them.
  const declaredCapabilities = onServerRequest === undefined && method === "tools/call"
    ? {}
    : capabilities;
  const tasks = (takesTasks || isTaskMethod(method)) &&
    { extensions: { ...objectOf(declaredCapabilities.extensions), [TASKS_EXTENSION]: {} } };
  return {
    ...params,
    _meta: {
      ...objectOf(params._meta),
      [META.version]: STATELESS_REVISION,
      [META.client]: clientInfo,
      [META.capabilities]: { roots: {}, ...declaredCapabilities, ...tasks },
      ...(onMessage && { [META.level]: "debug" }),
    },
  };
}

/** The changes that PML subscribes to at a server of the stateless revision. */
export const ALL_CHANGES = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
};
