/**
 * The members of a message that JSON-RPC does not define, next to `method`, `params` or `result`.
 *
 * @module
 */

import type { Json, JsonObject } from "../core/json.ts";
import type { OtherMembers } from "./call.ts";
import { withoutNamed } from "./result_members.ts";

/** The members of messages that JSON-RPC defines. The names are reserved in any case of letters. */
const DEFINED_NAMES: readonly string[] = ["jsonrpc", "id", "method", "params", "result", "error"];
/** The name that would set the prototype if code copied an object member by member. */
const PROTOTYPE_NAME = "__proto__";

/** The unknown members of answers, by the results of the answers. */
const membersByResult = new WeakMap<object, JsonObject>();

/**
 * Returns the members of a message that JSON-RPC does not define; undefined if it has none. Ignores
 * members that are null, because some programs write null for members that are not set.
 */
export function messageMembers(message: JsonObject): JsonObject | undefined {
  for (const name in message) {
    if (!DEFINED_NAMES.includes(name)) return otherMembers(message);
  }
  return undefined;
}

function otherMembers(message: JsonObject): JsonObject | undefined {
  const members = Object.entries(withoutNamed(message, DEFINED_NAMES))
    .filter(([name, value]) => name !== PROTOTYPE_NAME && value !== null);
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/**
 * Returns the unknown members of a notification; undefined if there are none. `params` contains only
 * the unknown members of its params, and `message` those next to `method` and `params`.
 */
export function notificationMembers(
  params: JsonObject,
  message: JsonObject | undefined,
): OtherMembers | undefined {
  const hasParams = Object.keys(params).length > 0;
  if (!hasParams && message === undefined) return undefined;
  return { ...hasParams && { params }, ...message && { message } };
}

/** Returns a message to send, with its unknown members only if the other side accepts them. */
export function messageWith(
  { members, ...message }: { readonly method: string; readonly members?: JsonObject | undefined },
  takesMembers: boolean,
): JsonObject {
  return { ...takesMembers && members, jsonrpc: "2.0", ...message };
}

/** Stores the unknown members of an answer under its result. */
export function storeResultMembers(answer: JsonObject, result: Json | undefined): void {
  const members = messageMembers(answer);
  if (members === undefined || typeof result !== "object" || result === null) return;
  membersByResult.set(result, members);
}

/** Returns the unknown members of the answer that contained a result. */
export function resultMembers(result: unknown): JsonObject | undefined {
  return typeof result === "object" && result !== null ? membersByResult.get(result) : undefined;
}
