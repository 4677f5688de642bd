/**
 * The members of calls and answers that PML does not know.
 *
 * @module
 */

import type { Call } from "../../protocol/call.ts";
import { type JsonObject, objectOf } from "../../core/json.ts";
import { resultMembers } from "../../protocol/message_members.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/** Adds the other members of a call, and its `_meta`, to the params that PML knows. */
export function withMembers(own: JsonObject, { meta, members }: Call): JsonObject {
  if (members === undefined) return meta === undefined ? own : { ...own, _meta: meta };
  const { _meta: ownMeta, ...others } = members.params ?? {};
  const all = { ...objectOf(ownMeta), ...meta };
  return { ...others, ...own, ...Object.keys(all).length > 0 && { _meta: all } };
}

/** Returns the members next to a result in the answer of a server, without secrets. */
export function besideResult(
  result: unknown,
  host: Pick<UpstreamsHost, "withoutSecrets">,
): { readonly members: JsonObject } | undefined {
  const members = resultMembers(result);
  return members && { members: host.withoutSecrets(members) };
}
