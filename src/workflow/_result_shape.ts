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
const DEPTH_MAX = 6;
/** The maximum number of values of one result that are read, and of items of one array. */
const MOST_VALUES = 1_000;
const MOST_ITEMS = 20;
/** An object with more keys counts as a map. */
const MOST_NAMES = 64;
/**
 * The minimum number of members of a map: an object whose members are objects of the same shape.
 */
const EQUAL_MIN = 4;
const LONGEST_NAME = 40;
/** The maximum length of a shape as JSON, in characters. */
const MOST_TEXT = 4_000;
/** A key that looks like an identifier: words with few digits, not a path, date, address or id. */
const NAME = /^[$@_]?[A-Za-z][A-Za-z_$-]*(?:\d{1,3}[A-Za-z_$-]*){0,2}$/;
const TYPES = new Set(["null", "boolean", "integer", "number", "string", "array", "object"]);

/** Returns the shape of a result. An object whose keys are texts of the arguments is a map. */
export function shapeOf(value: Json, args: JsonObject = {}): Shape {
  const texts = new Set(textsOf(args));
  let remaining = MOST_VALUES;
  const shapeAt = (part: unknown, depth: number): Shape => {
    if (--remaining < 0 || depth > DEPTH_MAX) return ANYTHING;
    if (Array.isArray(part)) {
      const items = part.slice(0, MOST_ITEMS).map((item) => shapeAt(item, depth + 1));
      return { type: "array", ...(items.length > 0 && { items: items.reduce(mergeShapes) }) };
    }
    if (!isObject(part)) return { type: typeOf(part) };
    const entries = Object.entries(part).slice(0, MOST_NAMES + 1)
      .map(([name, member]) => [name, shapeAt(member, depth + 1)] as const);
    const isMap = entries.some(([name]) => !isName(name) || texts.has(name)) ||
      haveEqualShapes(entries);
    return limitNames(objectShape(entries, isMap));
  };
  return limitLength(shapeAt(value, 0));
}

/** Returns a shape that matches all values that match one of the two shapes. */
export function mergeShapes(one: Shape, other: Shape): Shape {
  const types = [...new Set([typesOf(one), typesOf(other)].flat())];
  if (typesOf(one).length === 0 || typesOf(other).length === 0) return ANYTHING;
  const merged = types.includes("number") ? types.filter((type) => type !== "integer") : types;
  const items = mergeOptional(one.items, other.items);
  const [type = ""] = merged;
  return {
    type: merged.length === 1 ? type : merged.sort(),
    ...(items && { items }),
    ...mergeMembers(one, other),
  };
}

/** Returns the merged shape, reduced to the size limit. */
export function mergeLimited(one: Shape | undefined, other: Shape | undefined): Shape | undefined {
  const merged = mergeOptional(one, other);
  return merged && limitLength(merged);
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
  const isShape = isObject(json) && depth <= DEPTH_MAX + 1 && Object.entries(json)
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

function haveEqualShapes(entries: Entries): boolean {
  const [[, first] = []] = entries;
  if (entries.length < EQUAL_MIN || first?.type !== "object") return false;
  const text = JSON.stringify(first);
  return entries.every(([, shape]) => JSON.stringify(shape) === text);
}

function objectShape(entries: Entries, isMap: boolean): Shape {
  if (isMap) {
    const additionalProperties = entries.map(([, shape]) => shape).reduce(mergeShapes);
    return { type: "object", additionalProperties };
  }
  const properties = Object.fromEntries(entries);
  return { type: "object", properties, required: Object.keys(properties) };
}

function mergeMembers(one: Shape, other: Shape): Shape {
  const isObject = (shape: Shape) => typesOf(shape).includes("object");
  if (!isObject(one)) return membersOf(other);
  if (!isObject(other)) return membersOf(one);
  const both = [one, other].map(({ properties = {} }) => properties);
  const [names = [], others = []] = both.map(Object.keys);
  const common = names.filter((name) => others.includes(name));
  const maps = mergeOptional(one.additionalProperties, other.additionalProperties);
  const fewer = Math.min(names.length, others.length);
  // If two objects share few keys, their keys are data, so they are maps.
  const isMap = maps !== undefined || fewer > 0 && common.length * 2 < Math.min(fewer, 3);
  const all = [...new Set([...names, ...others])].map((name) => {
    const [mine, theirs] = both.map((properties) => memberOf(properties, name));
    return [name, mergeOptional(mine, theirs) ?? ANYTHING] as const;
  });
  const shapes = maps === undefined ? all : [...all, ["", maps] as const];
  const { type: _, ...merged } = limitNames(objectShape(shapes, isMap));
  if (merged.properties === undefined) return merged;
  const needed = new Set(other.required);
  return { ...merged, required: (one.required ?? []).filter((name) => needed.has(name)) };
}

function membersOf({ type: _, items: __, ...members }: Shape): Shape {
  return members;
}

function limitNames(shape: Shape): Shape {
  const entries = Object.entries(shape.properties ?? {});
  return entries.length > MOST_NAMES ? objectShape(entries, true) : shape;
}

function mergeOptional(one: Shape | undefined, other: Shape | undefined): Shape | undefined {
  return one && other ? mergeShapes(one, other) : one ?? other;
}

/** Removes the deepest parts of a shape until it is short enough. */
function limitLength(shape: Shape): Shape {
  let result = shape;
  for (let depth = DEPTH_MAX; JSON.stringify(result).length > MOST_TEXT && depth >= 0; depth--) {
    result = cutBelow(shape, depth);
  }
  return result;
}

function cutBelow(shape: Shape, depth: number): Shape {
  if (depth < 0) return ANYTHING;
  const { properties, additionalProperties, items } = shape;
  const inner = (part: Shape) => cutBelow(part, depth - 1);
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
