/**
 * Finds the members of calls and answers that PML does not know but passes on.
 *
 * @module
 */

import type { Call } from "../../protocol/call.ts";
import { type JsonObject, objectOf } from "../../core/json.ts";
import { resultMembers } from "../../protocol/message_members.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";

/**
 * Returns the params of a call: `knownParams`, the call's `_meta`, and the members that PML does
 * not know.
 */
export function withMembers(knownParams: JsonObject, { meta, members }: Call): JsonObject {
  if (members === undefined) {
    return meta === undefined ? knownParams : { ...knownParams, _meta: meta };
  }
  const { _meta: ownMeta, ...others } = members.params ?? {};
  const all = { ...objectOf(ownMeta), ...meta };
  return { ...others, ...knownParams, ...Object.keys(all).length > 0 && { _meta: all } };
}

/** Returns the members next to `result` in the answer of a server, without secrets. */
export function safeResultMembers(
  result: unknown,
  host: Pick<UpstreamsHost, "withoutSecrets">,
): { readonly members: JsonObject } | undefined {
  const members = resultMembers(result);
  return members && { members: host.withoutSecrets(members) };
}
