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
import { isOfTask } from "./_task_methods.ts";

/** The most characters of the name and the version of a client, as JSON. */
const INFO_MAX = 4_000;
/** The `clientInfo` of PML. */
const CLIENT = { name: "pml", version: VERSION };

/** Returns the `clientInfo` that a server gets: that of a client if it is valid, else that of PML. */
export function clientInfoFor(info: JsonObject | undefined): JsonObject {
  const isUsable = isClientInfo(info) && JSON.stringify(info).length <= INFO_MAX;
  return isUsable && info !== undefined ? info : CLIENT;
}

/** Adds the client capabilities and the wanted log level to the params of a request. */
export function withMeta(
  params: JsonObject,
  { client: { onAsk, onMessage }, takesTasks }: Pick<RequestOptions, "client" | "takesTasks">,
  { method = "", capabilities, clientInfo }: {
    readonly method?: string | undefined;
    readonly capabilities: JsonObject;
    readonly clientInfo: JsonObject;
  },
): JsonObject {
  // A list depends on the capabilities. In a call, servers must not ask if no client can answer.
  const declaredCapabilities = onAsk === undefined && method === "tools/call" ? {} : capabilities;
  const tasks = (takesTasks || isOfTask(method)) &&
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

/** The changes that a server of the stateless revision is asked to report. */
export const ALL_CHANGES = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
};
