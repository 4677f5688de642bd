/**
 * Creates valid and invalid values for a schema, to test its validator.
 *
 * @module
 */

import { isObject, type Json, type JsonObject, listOf } from "../core/json.ts";
import type { Maybe } from "../core/maybe.ts";
import { pointerKey } from "../core/schema_ref.ts";

type Schema = Readonly<Record<string, unknown>>;

/** An example for each string format. */
const FORMATS: Readonly<Record<string, string>> = {
  "date": "2026-01-31",
  "date-time": "2026-01-31T12:00:00Z",
  "duration": "P1D",
  "email": "a@example.com",
  "hostname": "example.com",
  "ipv4": "192.0.2.1",
  "ipv6": "2001:db8::1",
  "time": "12:00:00Z",
  "uri": "https://example.com/",
  "uuid": "00000000-0000-4000-8000-000000000000",
};
/** Strings that often match a pattern. */
const TEXTS = ["x", "1", "X", "ab", "12", "x1", "x/y", "x:y", "x.y", "1.0.0", "#000000"];
const MOST_ITEMS = 1_000;
const LONGEST = 100_000;
const KINDS: readonly Json[] = [null, true, 0.5, "", [], {}];
/** The maximum number of schemas to visit, because a schema may refer to itself. */
const STEPS_MAX = 500;

/** Matches a text against a pattern. */
interface PatternMatcher {
  matches(text: string, pattern: string): Maybe<boolean>;
}

/** The source of examples: the whole schema, and the number of remaining steps. */
interface ExampleSource extends PatternMatcher {
  readonly root: JsonObject;
  remaining: number;
}

/** Returns a small value that matches a schema. */
export async function exampleOf(schema: JsonObject, matching: PatternMatcher): Promise<Json> {
  const matches = (text: string, pattern: string) => matching.matches(text, pattern);
  return await example(schema, { root: schema, remaining: STEPS_MAX, matches });
}

async function example(schemaValue: unknown, source: ExampleSource): Promise<Json> {
  const schema = mergeSchema(schemaValue, source);
  const [firstExample] = [schema.examples, schema.enum].flatMap(listOf);
  for (const value of [schema.const, firstExample, schema.default]) {
    if (value !== undefined) return value as Json; // a schema is JSON
  }
  switch (typeOf(schema)) {
    case "object": {
      const entries: [string, Json][] = [];
      for (const name of namesOf(schema.required)) {
        entries.push([name, await example(propertySchema(schema, name), source)]);
      }
      return Object.fromEntries(entries);
    }
    case "array": {
      const items: Json[] = [];
      const count = Math.min(numberOf(schema.minItems) ?? 0, MOST_ITEMS);
      while (items.length < count) {
        const index = items.length;
        const item = Object(schema.prefixItems)[index] ?? schema.items ?? { const: index };
        items.push(await example(item, source));
      }
      return items;
    }
    case "integer":
    case "number":
      return exampleNumber(schema);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return await exampleText(schema, source);
  }
}

/**
 * Returns arguments that do not match a schema, and in `open` the properties that accept every kind
 * of value.
 */
export async function findWrongArguments(
  schema: JsonObject,
  { example, fits }: { readonly example: Json; readonly fits: (value: unknown) => Maybe<boolean> },
): Promise<{ readonly wrong: readonly Json[]; readonly open: readonly string[] }> {
  if (!isObject(example)) return { wrong: [], open: [] };
  const whole = mergeSchema(schema, { root: schema, remaining: STEPS_MAX });
  const plain = example as JsonObject; // an example consists of JSON
  const { wrong, open }: { wrong: Json[]; open: string[] } = { wrong: [], open: [] };
  for (const name of namesOf(whole.required)) {
    const { [name]: _, ...rest } = plain;
    wrong.push(rest);
  }
  for (const name of Object.keys(Object(whole.properties))) {
    const values = KINDS.map((value) => ({ ...plain, [name]: value }));
    const isFitting = await Promise.all(values.map(fits));
    const refused = values.find((_, index) => !isFitting[index]);
    if (refused === undefined) open.push(name);
    else wrong.push(refused);
  }
  if (whole.additionalProperties === false) wrong.push({ ...plain, "not a property": 1 });
  return { wrong, open };
}

/** Joins a schema with its `$ref`, all of `allOf`, and the first of `anyOf` and `oneOf`. */
function mergeSchema(value: unknown, source: Pick<ExampleSource, "root" | "remaining">): Schema {
  if (!isObject(value) || source.remaining-- <= 0) return {};
  const { $ref, allOf, anyOf, oneOf, ...own } = value;
  const [choice] = [anyOf, oneOf].flatMap((list) => Array.isArray(list) ? list.slice(0, 1) : []);
  const target = typeof $ref === "string" ? resolveLocalRef($ref, source.root) : undefined;
  const parts = [target, ...listOf(allOf), choice];
  return parts.filter(isObject).map((part) => mergeSchema(part, source)).reduce<Schema>(
    (one, other) => ({
      ...one,
      ...other,
      properties: { ...Object(one.properties), ...Object(other.properties) },
      required: [...new Set([...namesOf(one.required), ...namesOf(other.required)])],
    }),
    own,
  );
}

function resolveLocalRef(ref: string, root: JsonObject): unknown {
  // Does not follow references to other documents, or to schemas by name.
  if (!/^#(?:\/|$)/.test(ref)) return undefined;
  try {
    return decodeURIComponent(ref).split("/").slice(1)
      .map(pointerKey)
      .reduce<unknown>((from, part) => Object(from)[part], root);
  } catch {
    return undefined; // the reference has an invalid escape
  }
}

function typeOf(schema: Schema): unknown {
  if (schema.type !== undefined) return [schema.type].flat()[0];
  const has = (...keys: readonly string[]) => keys.some((key) => Object.hasOwn(schema, key));
  if (namesOf(schema.required).length > 0) return "object";
  if (has("items", "prefixItems", "minItems")) return "array";
  return has("minimum", "maximum", "multipleOf") ? "number" : "string";
}

function propertySchema(schema: Schema, name: string): unknown {
  return Object(schema.properties)[name] ?? schema.additionalProperties ?? {};
}

function namesOf(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.map(String) : [];
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function exampleNumber(schema: Schema): number {
  const step = numberOf(schema.multipleOf) ?? 1;
  const { exclusiveMinimum: above, exclusiveMaximum: below } = schema;
  const least = Math.max(
    numberOf(schema.minimum) ?? -Infinity,
    (numberOf(above) ?? -Infinity) + step,
  );
  const most = Math.min(numberOf(schema.maximum) ?? Infinity, (numberOf(below) ?? Infinity) - step);
  const nearest = Math.max(Math.min(0, most), least);
  // If no multiple of the step fits between the limits, the limit itself is used.
  const whole = Math.ceil(nearest / step) * step;
  return whole <= most || schema.multipleOf !== undefined ? whole : nearest;
}

async function exampleText(schema: Schema, { matches }: ExampleSource): Promise<string> {
  const format = FORMATS[String(schema.format)];
  if (format !== undefined) return format;
  const least = Math.min(numberOf(schema.minLength) ?? 0, LONGEST);
  const most = numberOf(schema.maxLength) ?? Infinity;
  const lengthen = (text: string) => text.repeat(Math.max(1, Math.ceil(least / text.length)));
  const texts = [
    ...TEXTS.map(lengthen),
    ...TEXTS.map((text) => lengthen(text).slice(0, least || 1)),
    "",
  ]
    .filter((text) => text.length >= least && text.length <= most);
  const { pattern } = schema;
  for (const text of texts) {
    if (typeof pattern !== "string" || await matches(text, pattern)) return text;
  }
  return "x";
}
