/**
 * Looks a schema over before it is used: one that is too large to be looked at is not used at all.
 *
 * @module
 */

import { isObject } from "./json.ts";

const DEEPEST = 64;
const MOST_SUBSCHEMAS = 2_000;
const MOST_VALUES = 50_000;
const MOST_CHARACTERS = 1_000_000;

/** Keywords whose value is a schema, or a list of them. */
const SCHEMAS = [
  ..."additionalItems additionalProperties allOf anyOf contains else if items not oneOf".split(" "),
  ..."prefixItems propertyNames then unevaluatedItems unevaluatedProperties".split(" "),
];
/** Keywords whose value has schemas by name, whatever the names are. */
const NAMED = "$defs definitions dependencies dependentSchemas patternProperties properties"
  .split(" ");

/** Returns the schemas directly within a schema: by its keywords, because properties have any name. */
function subschemas(schema: Readonly<Record<string, unknown>>): readonly unknown[] {
  return [
    ...SCHEMAS.flatMap((keyword) => schema[keyword] ?? []),
    ...NAMED.flatMap((keyword) => isObject(schema[keyword]) ? Object.values(schema[keyword]) : []),
  ];
}

/** Returns why a schema cannot be used; undefined if it can. */
export function unsafeSchema(schema: object): string | undefined {
  return whyTooLarge(schema) ?? tooNested(schema);
}

/**
 * Returns why a value has too many parts; undefined if it has not. All that is done with a tool's
 * definition takes as long as it is large.
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
    if (values > MOST_VALUES) return "it has too many values";
    if (Array.isArray(inner)) stack.push(...inner);
    for (const name of names) {
      characters += name.length;
      stack.push(Reflect.get(inner, name));
    }
    if (characters > MOST_CHARACTERS) return "it is too long";
  }
  return undefined;
}

/** Returns why a schema is nested too deep or has too many parts; undefined if it is not. */
export function tooNested(schema: object): string | undefined {
  let level = [schema].filter(isObject);
  let remaining = MOST_SUBSCHEMAS;
  for (let depth = DEEPEST; level.length > 0; depth--) {
    if (depth === 0) return "it is nested too deep";
    if ((remaining -= level.length) < 0) return "it has too many subschemas";
    level = level.flatMap(subschemas).filter(isObject);
  }
  return undefined;
}
