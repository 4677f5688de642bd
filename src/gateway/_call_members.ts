/**
 * Splits the members of a request that PML does not know: some are passed to the server without
 * being shown, and the user must approve the others.
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
const NO_META: SplitMeta = {};

/** The members of a call that its server receives besides its name and arguments. */
export type CallMembers = Pick<Call, "meta" | "members">;

/**
 * Splits the members of a request that is not a `tools/call`. `meta` is the `_meta` of its params,
 * `clientMeta` has the keys of it that the user added to the known ones, and `message` the other
 * members of the message, next to `params`.
 */
export function metaOf(
  meta: unknown,
  clientMeta: readonly string[],
  message: JsonObject | undefined,
): CallMembers {
  const { knownMeta, other } = splitMeta(meta, clientMeta);
  return callMembers(knownMeta, other && { _meta: other }, message);
}

/** Splits the members of a `tools/call` request. */
export function membersOf(
  params: JsonObject,
  clientMeta: readonly string[],
  message: JsonObject | undefined,
): CallMembers {
  const { knownMeta, other } = params._meta === undefined
    ? NO_META
    : splitMeta(params._meta, clientMeta);
  let all: JsonObject | undefined = other && { _meta: other };
  for (const name in params) {
    if (!Object.hasOwn(params, name)) continue;
    const value = params[name] as Json;
    if (OWN_PARAMS.includes(name) || name === "task" && isTask(value)) continue;
    all = { ...all, [name]: value };
  }
  return callMembers(knownMeta, all, message);
}

function callMembers(
  meta: JsonObject | undefined,
  params: JsonObject | undefined,
  message: JsonObject | undefined,
): CallMembers {
  const isKnown = params === undefined && message === undefined;
  if (isKnown) return meta === undefined ? NONE : { meta };
  const members: OtherMembers = { ...params && { params }, ...message && { message } };
  return { ...meta && { meta }, members };
}

/** The keys of a `_meta` that are known, and the others. */
interface SplitMeta {
  readonly knownMeta?: JsonObject | undefined;
  readonly other?: JsonObject | undefined;
}

function splitMeta(meta: unknown, listed: readonly string[]): SplitMeta {
  let knownMeta: Record<string, Json> | undefined;
  let other: Record<string, Json> | undefined;
  const members = objectOf(meta);
  for (const key of Object.keys(members)) {
    if (keys.dropped.includes(key)) continue;
    const value = members[key] as Json;
    const isPassed = listed.includes(key) || isKnown(key, value);
    setMember(isPassed ? knownMeta ??= {} : other ??= {}, key, value);
  }
  return { knownMeta, other };
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
