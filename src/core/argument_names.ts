/**
 * The names of arguments, which plans and batches compare with the schema before anything runs.
 *
 * @module
 */

import { type JsonObject, listOf, objectOf, quoted, visible } from "./json.ts";

/** Returns which argument is missing or unknown; undefined if the names match the schema. */
export function wrongNames(schema: JsonObject, args: JsonObject): string | undefined {
  const { required, properties, patternProperties, additionalProperties } = schema;
  const missing = listOf(required).find((name) => !Object.hasOwn(args, String(name)));
  if (missing !== undefined) return `Missing argument: ${visible(String(missing), 80)}`;
  if (additionalProperties !== false || patternProperties !== undefined) return undefined;
  const members = objectOf(properties);
  const unknown = Object.keys(args).find((name) => !Object.hasOwn(members, name));
  return unknown === undefined ? undefined : `${quoted(unknown)} is unknown`;
}
