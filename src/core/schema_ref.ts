/**
 * References inside a JSON Schema.
 *
 * @module
 */

import { isObject, memberOf } from "./json.ts";

const REF_DEPTH_MAX = 8;

/** Returns the target of a reference within a schema, such as `#/$defs/name`; undefined if none. */
export function resolveRef(root: unknown, ref: string): unknown {
  if (ref === "#") return root;
  const keys = ref.split("/");
  if (keys[0] !== "#" || keys.length > REF_DEPTH_MAX + 1) return undefined;
  return keys.slice(1).map(pointerKey).reduce(schemaAt, root);
}

/** Returns the key for a part of a JSON pointer. */
export function pointerKey(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Returns the value of an object's own key. */
export function schemaAt(value: unknown, key: string): unknown {
  return isObject(value) ? memberOf(value, key) : undefined;
}
