/**
 * Recognizes schemas whose check takes a bounded time, because they have no patterns, formats or
 * references. PML checks these schemas in its own process, and all others in a child that can be
 * killed.
 *
 * @module
 */

import { isObject } from "./json.ts";

/** The maximum product of the schema's parts and the value's parts: a check of about 50 ms. */
const MOST_COMPARISONS = 100_000;
const MOST_PARTS = 1_000;
/** The number of characters of a text that count as one part. */
const CHARACTERS_PER_PART = 100;

const isNumber = (value: unknown) => typeof value === "number";
const isText = (value: unknown) => typeof value === "string";
const isAnything = () => true;
const isTexts = (value: unknown) => Array.isArray(value) && value.every(isText);
const isPrimitive = (value: unknown) => typeof value !== "object" || value === null;
const isPrimitives = (value: unknown) => Array.isArray(value) && value.every(isPrimitive);

/** Keywords whose values contain no schemas, and the test of each value. */
const KEYWORDS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ...["title", "description", "$comment"].map((name) => [name, isText] as const),
  ...["default", "examples", "deprecated", "readOnly", "writeOnly"]
    .map((name) => [name, isAnything] as const),
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"]
    .map((name) => [name, isNumber] as const),
  ...["maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]
    .map((name) => [name, isNumber] as const),
  ["$schema", (value) => /^https?:\/\/json-schema\.org\/draft/.test(String(value))],
  ["type", (value) => isText(value) || isTexts(value)],
  ["required", isTexts],
  ["enum", isPrimitives],
  ["const", isPrimitive],
]);
const partCounts = new WeakMap<object, number>();

/** Returns whether PML can check a value against a schema itself. */
export function isPlainCheck(schema: object, value: unknown): boolean {
  let count = partCounts.get(schema);
  if (count === undefined) partCounts.set(schema, count = countParts(schema));
  return countValueParts(value, MOST_COMPARISONS / count) * count <= MOST_COMPARISONS;
}

/** Returns the number of parts of a schema; `Infinity` if one of them is not plain. */
function countParts(whole: unknown): number {
  const stack: unknown[] = [whole];
  let count = 0;
  while (stack.length > 0) {
    const schema = stack.pop();
    count++;
    if (typeof schema === "boolean") continue;
    if (!isObject(schema) || count > MOST_PARTS) return Infinity;
    for (const [keyword, value] of Object.entries(schema)) {
      const inner = schemasIn(keyword, value);
      if (inner === undefined && KEYWORDS.get(keyword)?.(value) !== true) return Infinity;
      stack.push(...inner ?? []);
      if (Array.isArray(value)) count += value.length;
    }
  }
  return count;
}

/** Returns the schemas in a keyword; undefined for a keyword without schemas. */
function schemasIn(keyword: string, value: unknown): readonly unknown[] | undefined {
  switch (keyword) {
    case "properties":
      if (!isObject(value) || Object.hasOwn(value, "__proto__")) return undefined;
      return Object.values(value);
    case "items":
    case "additionalProperties":
      return [value];
    case "anyOf":
    case "oneOf":
    case "allOf":
      return Array.isArray(value) ? value : undefined;
    default:
      return undefined;
  }
}

/** Returns the number of parts of a value, or a number over `most`. */
function countValueParts(whole: unknown, most: number): number {
  const stack: unknown[] = [whole];
  let count = 0;
  while (stack.length > 0 && count <= most) {
    const value = stack.pop();
    count += typeof value === "string" ? 1 + value.length / CHARACTERS_PER_PART : 1;
    if (typeof value !== "object" || value === null) continue;
    for (const inner of Object.values(value)) {
      stack.push(inner);
      if (stack.length > most) return Infinity;
    }
  }
  return count;
}
