/**
 * The members of a `tools/call` request besides `name` and `arguments`: which pass to the server
 * without being shown, and which the user must approve.
 *
 * @module
 */

import keys from "../../config/client-meta.json" with { type: "json" };
import type { Call } from "../protocol/call.ts";
import { numberOf } from "../core/exact_number.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  memberOf,
  objectOf,
  setMember,
} from "../core/json.ts";

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

const NONE: CallMembers = {};

/** The members of a call that its server receives besides its name and arguments. */
export type CallMembers = Pick<Call, "meta" | "members">;

/** Splits the `_meta` of a request. `listed` are the keys that the user added to the known ones. */
export function metaOf(meta: unknown, listed: readonly string[]): CallMembers {
  let known: Record<string, Json> | undefined;
  let other: Record<string, Json> | undefined;
  const sent = objectOf(meta);
  for (const key of Object.keys(sent)) {
    if (keys.dropped.includes(key)) continue;
    const value = sent[key] as Json;
    const isPassed = listed.includes(key) || isKnown(key, value);
    setMember(isPassed ? known ??= {} : other ??= {}, key, value);
  }
  return { ...known && { meta: known }, ...other && { members: { _meta: other } } };
}

/** Splits the members of the params of a `tools/call` request. */
export function membersOf(params: JsonObject, listed: readonly string[]): CallMembers {
  const { meta, members } = params._meta === undefined ? NONE : metaOf(params._meta, listed);
  let all = members;
  for (const name in params) {
    if (!Object.hasOwn(params, name)) continue;
    const value = params[name] as Json;
    if (OWN_PARAMS.includes(name) || name === "task" && isTask(value)) continue;
    all = { ...all, [name]: value };
  }
  if (meta === undefined && all === undefined) return NONE;
  return { ...meta && { meta }, ...all && { members: all } };
}

function isKnown(key: string, value: Json): boolean {
  switch (memberOf(KNOWN, key)) {
    case "text":
      return numberOf(value) !== undefined || typeof value === "string" && value.length <= TEXT_MAX;
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
  return numberOf(ttl) !== undefined && Object.keys(rest).length === 0;
}
