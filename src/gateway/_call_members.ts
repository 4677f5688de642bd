/**
 * The members of a `tools/call` request besides `name` and `arguments`: which pass to the server
 * without being shown, and which the user must approve.
 *
 * @module
 */

import keys from "../../config/client-meta.json" with { type: "json" };
import type { Call } from "../core/call.ts";
import { isObject, type Json, type JsonObject, memberOf, objectOf } from "../core/json.ts";

/** The longest text that passes without being shown. W3C allows 512 characters of `tracestate`. */
const TEXT_MAX = 512;
/** The largest object that passes without being shown, in characters of JSON. */
const OBJECT_MAX = 16_384;

/** The kinds of values by the keys of `_meta` that the protocol and known clients use. */
const KNOWN: Readonly<Record<string, string>> = Object.assign(
  {},
  keys.protocol,
  ...Object.values(keys.clients),
);

/** The members of `params` that PML itself reads. */
const OWN_PARAMS = ["name", "arguments", "_meta", "inputResponses", "requestState"];

/** The members of a call that its server receives besides its name and arguments. */
export type CallMembers = Pick<Call, "meta" | "members">;

/** Splits the `_meta` of a request. `listed` are the keys that the user added to the known ones. */
export function metaOf(meta: unknown, listed: readonly string[]): CallMembers {
  const sent = Object.entries(objectOf(meta)).filter(([key]) => !keys.dropped.includes(key));
  const { known = [], other = [] } = Object.groupBy(
    sent,
    ([key, value]) => listed.includes(key) || isKnown(key, value) ? "known" : "other",
  );
  return {
    ...known.length > 0 && { meta: Object.fromEntries(known) },
    ...other.length > 0 && { members: { _meta: Object.fromEntries(other) } },
  };
}

/** Splits the members of the params of a `tools/call` request. */
export function membersOf(params: JsonObject, listed: readonly string[]): CallMembers {
  const { meta, members } = metaOf(params._meta, listed);
  const others = Object.entries(params).filter(([name, value]) =>
    !OWN_PARAMS.includes(name) && !(name === "task" && isTask(value))
  );
  const all = { ...Object.fromEntries(others), ...members };
  return { ...meta && { meta }, ...Object.keys(all).length > 0 && { members: all } };
}

function isKnown(key: string, value: Json): boolean {
  switch (memberOf(KNOWN, key)) {
    case "text":
      return typeof value === "number" || typeof value === "string" && value.length <= TEXT_MAX;
    case "object":
      return isObject(value) && JSON.stringify(value).length <= OBJECT_MAX;
    default:
      return false;
  }
}

/** Returns whether a `task` is that of the protocol, which has a `ttl` and nothing else. */
function isTask(value: Json): boolean {
  if (!isObject(value)) return false;
  const { ttl = 0, ...rest } = value;
  return typeof ttl === "number" && Object.keys(rest).length === 0;
}
