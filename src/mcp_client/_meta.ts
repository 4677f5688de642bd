/**
 * What each request of the newest revision says of the client.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../core/json.ts";
import { VERSION } from "../core/version.ts";
import type { RequestOptions } from "./_peer.ts";
import { MODERN } from "./_revisions.ts";
import { isOfTask, TASKS } from "./_tasks.ts";

/** Who PML is. */
export const CLIENT = { name: "pml", version: VERSION };

const META = "io.modelcontextprotocol/";

/** Adds to the params of a request what the client can do, and which log messages it wants. */
export function withMeta(
  params: JsonObject,
  { onAsk, onMessage, takesTasks, method = "", able }: RequestOptions & {
    readonly method?: string | undefined;
    readonly able: JsonObject;
  },
): JsonObject {
  // A list shows what the client can use; a call that nobody can be asked about must not ask.
  const known = onAsk === undefined && method === "tools/call" ? {} : able;
  const tasks = (takesTasks || isOfTask(method)) &&
    { extensions: { ...objectOf(known.extensions), [TASKS]: {} } };
  return {
    ...params,
    _meta: {
      ...objectOf(params._meta),
      [`${META}protocolVersion`]: MODERN,
      [`${META}clientInfo`]: CLIENT,
      [`${META}clientCapabilities`]: { roots: {}, ...known, ...tasks },
      ...(onMessage && { [`${META}logLevel`]: "debug" }),
    },
  };
}

/** What a server of the newest revision is asked to tell of. */
export const ALL_CHANGES = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
};
