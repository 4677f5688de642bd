/**
 * The shape of a result as JSON Schema: types, and no values.
 *
 * @module
 */

import { isObject, type Json, type JsonObject } from "../core/json.ts";

const DEEPEST = 4;
const MOST_MEMBERS = 40;

/** Returns the shape of a value. */
export function shapeSchema(value: Json, depth = 0): JsonObject {
  if (value === null) return { type: "null" };
  if (Array.isArray(value)) {
    const [first] = value;
    return { type: "array", ...(first !== undefined && { items: shapeSchema(first, depth + 1) }) };
  }
  if (!isObject(value)) return { type: typeof value };
  const names = Object.keys(value);
  // Long lists of names are keys of data and no members.
  if (depth >= DEEPEST || names.length > MOST_MEMBERS) return { type: "object" };
  const members = names.map((name) => [name, shapeSchema(value[name] as Json, depth + 1)]);
  return { type: "object", properties: Object.fromEntries(members) };
}
