/**
 * Checks the size of a schema before it is used, because the time of all further work grows with
 * its size.
 *
 * @module
 */

import { isObject } from "./json.ts";

const DEPTH_MAX = 64;
const SUBSCHEMAS_MAX = 2_000;
const VALUES_MAX = 50_000;
const CHARACTERS_MAX = 1_000_000;

/** Keywords whose value is a schema, or a list of schemas. */
const SCHEMAS = [
  ..."additionalItems additionalProperties allOf anyOf contains else if items not oneOf".split(" "),
  ..."prefixItems propertyNames then unevaluatedItems unevaluatedProperties".split(" "),
];
/** Keywords whose value has schemas by name, whatever the names are. */
const SCHEMAS_BY_NAME =
  "$defs definitions dependencies dependentSchemas patternProperties properties"
    .split(" ");

/** Returns the direct subschemas. Reads only keywords, because a property may have any name. */
function subschemas(schema: Readonly<Record<string, unknown>>): readonly unknown[] {
  return [
    ...SCHEMAS.flatMap((keyword) => schema[keyword] ?? []),
    ...SCHEMAS_BY_NAME.flatMap((keyword) =>
      isObject(schema[keyword]) ? Object.values(schema[keyword]) : []
    ),
  ];
}

/** Returns why a schema cannot be used; undefined if it can. */
export function whyUnsafe(schema: object): string | undefined {
  return whyTooLarge(schema) ?? whyTooNested(schema);
}

/**
 * Returns why a value is too large; undefined if it is not. Used for whole definitions of tools.
 */
export function whyTooLarge(value: object): string | undefined {
  const stack: unknown[] = [value];
  let [values, characters] = [0, 0];
  while (stack.length > 0) {
    const next = stack.pop();
    if (typeof next === "string") characters += next.length;
    const inner = typeof next === "object" && next !== null ? next : {};
    const names = Array.isArray(inner) ? [] : Object.keys(inner);
    values += Array.isArray(inner) ? inner.length : names.length;
    if (values > VALUES_MAX) return "it has too many values";
    if (Array.isArray(inner)) stack.push(...inner);
    for (const name of names) {
      characters += name.length;
      stack.push(Reflect.get(inner, name));
    }
    if (characters > CHARACTERS_MAX) return "it is too long";
  }
  return undefined;
}

/** Returns why a schema has too many levels or subschemas; undefined if it does not. */
export function whyTooNested(schema: object): string | undefined {
  let level = [schema].filter(isObject);
  let remaining = SUBSCHEMAS_MAX;
  for (let depth = DEPTH_MAX; level.length > 0; depth--) {
    if (depth === 0) return "it is nested too deep";
    if ((remaining -= level.length) < 0) return "it has too many subschemas";
    level = level.flatMap(subschemas).filter(isObject);
  }
  return undefined;
}
