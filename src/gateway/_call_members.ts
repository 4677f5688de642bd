/**
 * Splits the members of a request that PML does not read itself. Known keys of `_meta` go to the
 * server without approval. The user must approve all other members.
 *
 * @module
 */

import keys from "../../config/client-meta.json" with { type: "json" };
import type { Call, OtherMembers } from "../protocol/call.ts";
import { numberOf } from "../core/exact_number.ts";
import {
  isObject,
  type Json,
  type JsonObject,
  memberOf,
  objectOf,
  setMember,
} from "../core/json.ts";

/** The maximum length of a text without approval. W3C allows 512 characters of `tracestate`. */
const TEXT_MAX = 512;
/** The maximum length of an object without approval, in characters of JSON. */
const OBJECT_MAX = 16_384;

/** The keys of `_meta` that the protocol and known clients use, and the kinds of their values. */
const KNOWN_META: Readonly<Record<string, string>> = Object.assign(
  {},
  keys.protocol,
  ...Object.values(keys.clients),
);

/** The members of `params` that PML itself reads. */
const OWN_PARAMS = ["name", "arguments", "_meta", "inputResponses", "requestState"];

const NO_MEMBERS: CallMembers = {};
const NO_META: SplitMeta = {};

/** The members of a call, apart from its name and arguments, that its server receives. */
export type CallMembers = Pick<Call, "meta" | "members">;

/**
 * Splits the members of a request that is not a `tools/call`. `meta` is the `_meta` of its params.
 * `clientMeta` lists the keys of `_meta` that the user added to the known keys. `message` has the
 * unknown members next to `params`.
 */
export function splitRequestMembers(
  meta: unknown,
  clientMeta: readonly string[],
  message: JsonObject | undefined,
): CallMembers {
  const { knownMeta, other } = splitMeta(meta, clientMeta);
  return toCallMembers(knownMeta, other && { _meta: other }, message);
}

/** Splits the members of a `tools/call` request. */
export function splitCallMembers(
  params: JsonObject,
  clientMeta: readonly string[],
  message: JsonObject | undefined,
): CallMembers {
  const { knownMeta, other } = params._meta === undefined
    ? NO_META
    : splitMeta(params._meta, clientMeta);
  let otherParams: JsonObject | undefined = other && { _meta: other };
  for (const name in params) {
    if (!Object.hasOwn(params, name)) continue;
    const value = params[name] as Json;
    if (OWN_PARAMS.includes(name) || name === "task" && isTaskRequest(value)) continue;
    otherParams = { ...otherParams, [name]: value };
  }
  return toCallMembers(knownMeta, otherParams, message);
}

function toCallMembers(
  meta: JsonObject | undefined,
  params: JsonObject | undefined,
  message: JsonObject | undefined,
): CallMembers {
  const hasOnlyKnown = params === undefined && message === undefined;
  if (hasOnlyKnown) return meta === undefined ? NO_MEMBERS : { meta };
  const members: OtherMembers = { ...params && { params }, ...message && { message } };
  return { ...meta && { meta }, members };
}

/** The known and the other members of a `_meta`. */
interface SplitMeta {
  readonly knownMeta?: JsonObject | undefined;
  readonly other?: JsonObject | undefined;
}

function splitMeta(meta: unknown, clientMeta: readonly string[]): SplitMeta {
  let knownMeta: Record<string, Json> | undefined;
  let other: Record<string, Json> | undefined;
  const members = objectOf(meta);
  for (const key of Object.keys(members)) {
    if (keys.dropped.includes(key)) continue;
    const value = members[key] as Json;
    const isPassed = clientMeta.includes(key) || isKnownMeta(key, value);
    setMember(isPassed ? knownMeta ??= {} : other ??= {}, key, value);
  }
  return { knownMeta, other };
}

function isKnownMeta(key: string, value: Json): boolean {
  switch (memberOf(KNOWN_META, key)) {
    case "text":
      return numberOf(value) !== undefined || typeof value === "string" && value.length <= TEXT_MAX;
    case "object":
      return isObject(value) && JSON.stringify(value).length <= OBJECT_MAX;
    default:
      return false;
  }
}

/** Returns whether a `task` has only the member that the protocol defines, `ttl`. */
function isTaskRequest(value: Json): boolean {
  if (!isObject(value)) return false;
  const { ttl = 0, ...rest } = value;
  return numberOf(ttl) !== undefined && Object.keys(rest).length === 0;
}
