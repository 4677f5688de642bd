/**
 * Describes the types of results as JSON Schema. It keeps no value of a result, and no key that
 * looks like a value.
 *
 * @module
 */

import { numberOf } from "../core/exact_number.ts";
import { isObject, type Json, type JsonObject, memberOf } from "../core/json.ts";

/** A JSON Schema with types only. */
export interface Shape {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  /** The shape of all values of a map, whose keys are not kept. */
  readonly additionalProperties?: Shape;
  readonly items?: Shape;
}

const ANYTHING: Shape = {};
const DEEPEST = 6;
/** The maximum number of values of one result, and of items of one array, that are read. */
const MOST_VALUES = 1_000;
const MOST_ITEMS = 20;
/** An object with more keys is a map. */
const MOST_NAMES = 64;
/** The number of objects with the same shape that makes an object a map. */
const ALIKE = 4;
const LONGEST_NAME = 40;
/** The maximum length of a shape as JSON, in characters. */
const MOST_TEXT = 4_000;
/** Words with at most a few digits at the end, but no number, path, address, date or id. */
const NAME = /^[$@_]?[A-Za-z][A-Za-z_$-]*(?:\d{1,3}[A-Za-z_$-]*){0,2}$/;
const TYPES = new Set(["null", "boolean", "integer", "number", "string", "array", "object"]);

/** Returns the shape of a result, without keys that are texts of the arguments. */
export function shapeOf(value: Json, args: JsonObject = {}): Shape {
  const texts = new Set(textsOf(args));
  let remaining = MOST_VALUES;
  const at = (part: unknown, depth: number): Shape => {
    if (--remaining < 0 || depth > DEEPEST) return ANYTHING;
    if (Array.isArray(part)) {
      const items = part.slice(0, MOST_ITEMS).map((item) => at(item, depth + 1));
      return { type: "array", ...(items.length > 0 && { items: items.reduce(mergedShape) }) };
    }
    if (!isObject(part)) return { type: typeOf(part) };
    const entries = Object.entries(part).slice(0, MOST_NAMES + 1)
      .map(([name, member]) => [name, at(member, depth + 1)] as const);
    const isMap = entries.some(([name]) => !isName(name) || texts.has(name)) || areAlike(entries);
    return bounded(objectShape(entries, isMap));
  };
  return fitted(at(value, 0));
}

/** Returns a shape that matches both results. */
export function mergedShape(one: Shape, other: Shape): Shape {
  const types = [...new Set([typesOf(one), typesOf(other)].flat())];
  if (typesOf(one).length === 0 || typesOf(other).length === 0) return ANYTHING;
  const ownTypes = types.includes("number") ? types.filter((type) => type !== "integer") : types;
  const items = either(one.items, other.items);
  const [type = ""] = ownTypes;
  return {
    type: ownTypes.length === 1 ? type : ownTypes.sort(),
    ...(items && { items }),
    ...mergedObject(one, other),
  };
}

/** Returns the merged shape, reduced to the size limit. */
export function mergedShapes(one: Shape | undefined, other: Shape | undefined): Shape | undefined {
  const merged = either(one, other);
  return merged && fitted(merged);
}

/** Parses a stored shape. Throws if it contains anything but types. */
export function parseShape(json: unknown, depth = 0): Shape {
  const inner = (part: unknown) => parseShape(part, depth + 1) !== undefined;
  const keywords: Readonly<Record<string, (value: unknown) => boolean>> = {
    type: (value) => [value].flat().every((name) => TYPES.has(String(name))),
    required: (value) => Array.isArray(value) && value.every((name) => isName(String(name))),
    properties: (value) =>
      isObject(value) && Object.entries(value).every(([name, part]) => isName(name) && inner(part)),
    additionalProperties: inner,
    items: inner,
  };
  const isShape = isObject(json) && depth <= DEEPEST + 1 && Object.entries(json)
    .every(([key, value]) => Object.hasOwn(keywords, key) && keywords[key]?.(value));
  if (!isShape) throw new TypeError("it is not a shape");
  // Each member was checked.
  return json as Shape;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  const number = numberOf(value);
  if (number !== undefined) return Number.isInteger(number) ? "integer" : "number";
  return typeof value;
}

function typesOf({ type = [] }: Shape): readonly string[] {
  return typeof type === "string" ? [type] : type;
}

/** Returns whether a key may be kept, because it looks like a programmer's identifier. */
function isName(name: string): boolean {
  if (name.length > LONGEST_NAME || !NAME.test(name)) return false;
  // Random letters change case more often than words do.
  return (name.match(/[a-z][A-Z]/g)?.length ?? 0) <= Math.max(2, name.length / 5);
}

type Entries = readonly (readonly [name: string, shape: Shape])[];

function areAlike(entries: Entries): boolean {
  const [first] = entries;
  if (first === undefined || entries.length < ALIKE || first[1].type !== "object") return false;
  const text = JSON.stringify(first[1]);
  return entries.every(([, shape]) => JSON.stringify(shape) === text);
}

function objectShape(entries: Entries, isMap: boolean): Shape {
  if (isMap) {
    const additionalProperties = entries.map(([, shape]) => shape).reduce(mergedShape);
    return { type: "object", additionalProperties };
  }
  const properties = Object.fromEntries(entries);
  return { type: "object", properties, required: Object.keys(properties) };
}

function mergedObject(one: Shape, other: Shape): Shape {
  const isObject = (shape: Shape) => typesOf(shape).includes("object");
  if (!isObject(one)) return membersOf(other);
  if (!isObject(other)) return membersOf(one);
  const both = [one, other].map(({ properties = {} }) => properties);
  const [names = [], others = []] = both.map(Object.keys);
  const common = names.filter((name) => others.includes(name));
  const maps = either(one.additionalProperties, other.additionalProperties);
  const least = Math.min(names.length, others.length);
  // The keys of objects are data if the objects share no or few keys.
  const isMap = maps !== undefined || least > 0 && common.length * 2 < Math.min(least, 3);
  const all = [...new Set([...names, ...others])].map((name) => {
    const [mine, theirs] = both.map((of) => memberOf(of, name));
    return [name, either(mine, theirs) ?? ANYTHING] as const;
  });
  const shapes = maps === undefined ? all : [...all, ["", maps] as const];
  const { type: _, ...merged } = bounded(objectShape(shapes, isMap));
  if (merged.properties === undefined) return merged;
  const needed = new Set(other.required);
  return { ...merged, required: (one.required ?? []).filter((name) => needed.has(name)) };
}

function membersOf({ type: _, items: __, ...members }: Shape): Shape {
  return members;
}

function bounded(shape: Shape): Shape {
  const entries = Object.entries(shape.properties ?? {});
  return entries.length > MOST_NAMES ? objectShape(entries, true) : shape;
}

function either(one: Shape | undefined, other: Shape | undefined): Shape | undefined {
  return one && other ? mergedShape(one, other) : one ?? other;
}

/** Removes the deepest parts of a shape until it is short enough. */
function fitted(shape: Shape): Shape {
  let result = shape;
  for (let depth = DEEPEST; JSON.stringify(result).length > MOST_TEXT && depth >= 0; depth--) {
    result = cut(shape, depth);
  }
  return result;
}

function cut(shape: Shape, depth: number): Shape {
  if (depth < 0) return ANYTHING;
  const { properties, additionalProperties, items } = shape;
  const inner = (part: Shape) => cut(part, depth - 1);
  return {
    ...shape,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, part]) => [name, inner(part)]),
      ),
    }),
    ...(additionalProperties && { additionalProperties: inner(additionalProperties) }),
    ...(items && { items: inner(items) }),
  };
}

/** Returns the texts of arguments, which may become keys of the result. */
function textsOf(value: Json, depth = 0): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null || depth > 2) return [];
  return Object.values(value).slice(0, MOST_NAMES).flatMap((part) => textsOf(part, depth + 1));
}
