/**
 * References in plans: `{"$ref": "task#/json/pointer"}` refers to a part of an output, and
 * `{"$literal": value}` contains a value without references.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isExactNumber } from "../core/exact_number.ts";
import { isObject, type Json, type JsonObject, memberOf, quoted } from "../core/json.ts";
import { keyIn } from "../core/schema_ref.ts";

/** A parsed reference to a part of a task's output, or of another source. */
export interface Ref {
  /** A task, `$item`, `$index`, `$params`, or `RUN.TASK` for an output that was kept. */
  readonly source: string;
  /** A JSON pointer; empty for the whole output. */
  readonly pointer: string;
}

/** The error of a reference to a part that the output does not have. */
export class MissingReference extends PmlError {}

/** Returns the value of a reference. */
export type Take = (ref: Ref) => Json;

const DEPTH_MAX = 64;
/** Values without references. Plans do not change, so one check of a value is enough. */
const PLAIN = new WeakSet<object>();
const KEYS_SHOWN = 12;

/** Returns a value with all references replaced by their values. */
export function withReferences(value: Json, take: Take, depth = 0): Json {
  if (typeof value !== "object" || value === null || PLAIN.has(value)) return value;
  if (isExactNumber(value)) return value;
  if (depth > DEPTH_MAX) throw bad(`it is nested deeper than ${DEPTH_MAX}`);
  if (!isList(value)) {
    if (Object.hasOwn(value, "$literal")) return alone(value, "$literal");
    if (Object.hasOwn(value, "$ref")) return take(refOf(alone(value, "$ref")));
  }
  const before = Object.values(value);
  const after = before.map((one) => withReferences(one, take, depth + 1));
  if (after.every((one, at) => one === before[at])) {
    if (depth === 0) PLAIN.add(value);
    return value;
  }
  if (isList(value)) return after;
  // Not an assignment, because a member may be named `__proto__`.
  return Object.fromEntries(Object.keys(value).map((key, at) => [key, after[at] ?? null]));
}

/** Returns the references in a value. Throws BAD_ARGUMENTS if one is invalid or nested too deep. */
export function refsIn(value: Json): readonly Ref[] {
  const refs: Ref[] = [];
  withReferences(value, (ref) => {
    refs.push(ref);
    return null;
  });
  return refs;
}

/** Parses `source#pointer`. */
export function parseRef(text: string): Ref {
  const hash = text.indexOf("#");
  const source = hash < 0 ? text : text.slice(0, hash);
  const pointer = hash < 0 ? "" : text.slice(hash + 1);
  if (pointer !== "" && !pointer.startsWith("/")) {
    throw bad(`the pointer in ${quoted(text)} does not begin with "/"`);
  }
  return { source, pointer };
}

/** Returns the part at a JSON pointer. Throws BAD_ARGUMENTS with the members that exist. */
export function partAt(whole: Json, { source, pointer }: Ref): Json {
  if (pointer === "") return whole;
  let value = whole;
  let path = "";
  for (const part of pointer.slice(1).split("/")) {
    const next = valueAt(value, keyIn(part));
    if (next === undefined) {
      const where = path === "" ? quoted(source) : quoted(`${source}#${path}`, 300);
      throw new MissingReference(
        "BAD_ARGUMENTS",
        `Cannot read it: ${quoted(`${source}#${pointer}`, 300)} is missing: ` +
          `${where} is ${textOf(value)}`,
      );
    }
    value = next;
    path += `/${part}`;
  }
  return value;
}

/** Returns whether a value is an array. `Array.isArray` does not narrow read-only arrays. */
export function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

/** Returns the error for an invalid part of a plan. */
export function bad(why: string): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot read it: ${why}`);
}

function refOf(text: Json): Ref {
  if (typeof text !== "string") throw bad('"$ref" is not a string');
  return parseRef(text);
}

function alone(value: JsonObject, key: string): Json {
  if (Object.keys(value).length > 1) {
    throw bad(
      `"${key}" must be the only member of its object. ` +
        'Put data into {"$literal": …}',
    );
  }
  return value[key] ?? null;
}

function valueAt(value: Json, key: string): Json | undefined {
  if (typeof value !== "object" || value === null || isExactNumber(value)) return undefined;
  if (isList(value)) return /^(0|[1-9]\d{0,9})$/.test(key) ? value[Number(key)] : undefined;
  return memberOf(value, key);
}

/** Describes a value, with the names of its members. */
function textOf(value: Json): string {
  if (isObject(value)) {
    const keys = Object.keys(value);
    const list = keys.slice(0, KEYS_SHOWN).map((key) => quoted(key, 40)).join(", ");
    const more = keys.length > KEYS_SHOWN ? ` and ${keys.length - KEYS_SHOWN} more` : "";
    return keys.length === 0 ? "an empty object" : `an object with ${list}${more}`;
  }
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (isExactNumber(value)) return "a number";
  return value === null ? "null" : `a ${typeof value}`;
}
