/**
 * The members of a message that JSON-RPC does not define, next to `method`, `params` or `result`.
 *
 * @module
 */

import type { Json, JsonObject } from "../core/json.ts";
import type { OtherMembers } from "./call.ts";
import { withoutNamed } from "./result_members.ts";

/** The members of messages that JSON-RPC defines, whose names are reserved in any case. */
const DEFINED: readonly string[] = ["jsonrpc", "id", "method", "params", "result", "error"];
/** The name that sets the prototype if an object is copied member by member. */
const PROTOTYPE = "__proto__";

/** The members of answers, by their results. */
const besideResults = new WeakMap<object, JsonObject>();

/**
 * Returns the other members of a message; undefined if it has none. Members that are null count as
 * absent: some programs write null for members that are not set.
 */
export function messageMembers(message: JsonObject): JsonObject | undefined {
  for (const name in message) {
    if (!DEFINED.includes(name)) return otherMembers(message);
  }
  return undefined;
}

function otherMembers(message: JsonObject): JsonObject | undefined {
  const members = Object.entries(withoutNamed(message, DEFINED))
    .filter(([name, value]) => name !== PROTOTYPE && value !== null);
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

/**
 * Returns the members of a notification that PML does not know; undefined if it has none. `params`
 * are the unknown ones of its params.
 */
export function notificationMembers(
  params: JsonObject,
  message: JsonObject | undefined,
): OtherMembers | undefined {
  const hasParams = Object.keys(params).length > 0;
  if (!hasParams && message === undefined) return undefined;
  return { ...hasParams && { params }, ...message && { message } };
}

/** Returns a message as it is sent: with its other members, if the other side takes them. */
export function messageWith(
  { members, ...message }: { readonly method: string; readonly members?: JsonObject | undefined },
  takesMembers: boolean,
): JsonObject {
  return { ...takesMembers && members, jsonrpc: "2.0", ...message };
}

/** Remembers the other members of an answer with this result. */
export function noteResultMembers(answer: JsonObject, result: Json | undefined): void {
  const members = messageMembers(answer);
  if (members === undefined || typeof result !== "object" || result === null) return;
  besideResults.set(result, members);
}

/** Returns the other members of the answer that had this result. */
export function resultMembers(result: unknown): JsonObject | undefined {
  return typeof result === "object" && result !== null ? besideResults.get(result) : undefined;
}
