/**
 * References in plans: `{"$ref": "task#/json/pointer"}` refers to a part of an output, and
 * `{"$literal": value}` contains a value without references.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isExactNumber } from "../core/exact_number.ts";
import { isObject, type Json, type JsonObject, memberOf, quoted } from "../core/json.ts";
import { pointerKey } from "../core/schema_ref.ts";

/** A parsed reference to a part of a task's output, or of another source. */
export interface Ref {
  /** A task, `$item`, `$index`, `$params`, or `RUN.TASK` for an output that was kept. */
  readonly source: string;
  /** A JSON pointer; empty for the whole output. */
  readonly pointer: string;
}

/** The error of a reference to a part that the output does not have. */
export class MissingReference extends PmlError {}

/** Returns the value that a reference refers to. */
export type ResolveRef = (ref: Ref) => Json;

/** The maximum depth of arrays and objects in a value with references. */
const DEPTH_MAX = 64;
/** Values that contain no reference. Plans do not change, so each value is searched only once. */
const PLAIN = new WeakSet<object>();
const KEYS_SHOWN = 12;

/** Returns a value with all references replaced by their values. */
export function withReferences(value: Json, resolve: ResolveRef, depth = 0): Json {
  if (typeof value !== "object" || value === null || PLAIN.has(value)) return value;
  if (isExactNumber(value)) return value;
  if (depth > DEPTH_MAX) throw badRequestError(`a value is nested deeper than ${DEPTH_MAX}`);
  if (!isList(value)) {
    if (Object.hasOwn(value, "$literal")) return onlyMember(value, "$literal");
    if (Object.hasOwn(value, "$ref")) return resolve(refOf(onlyMember(value, "$ref")));
  }
  const members = Object.values(value);
  const resolved = members.map((member) => withReferences(member, resolve, depth + 1));
  if (resolved.every((member, index) => member === members[index])) {
    if (depth === 0) PLAIN.add(value);
    return value;
  }
  if (isList(value)) return resolved;
  // Not an assignment, because a member may be named `__proto__`.
  return Object.fromEntries(Object.keys(value).map((key, index) => [key, resolved[index] ?? null]));
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
    throw badRequestError(`the pointer in ${quoted(text)} does not begin with "/"`);
  }
  return { source, pointer };
}

/** Returns the part at a JSON pointer. Throws BAD_ARGUMENTS with the names of existing members. */
export function partAt(whole: Json, { source, pointer }: Ref): Json {
  if (pointer === "") return whole;
  let value = whole;
  let path = "";
  for (const part of pointer.slice(1).split("/")) {
    const next = valueAt(value, pointerKey(part));
    if (next === undefined) {
      const where = path === "" ? quoted(source) : quoted(`${source}#${path}`, 300);
      throw new MissingReference(
        "BAD_ARGUMENTS",
        `Cannot read the request: ${quoted(`${source}#${pointer}`, 300)} is missing: ` +
          `${where} is ${describeValue(value)}`,
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

/** Returns the error for an invalid part of a plan, or of a request for a page. */
export function badRequestError(why: string): PmlError {
  return new PmlError("BAD_ARGUMENTS", `Cannot read the request: ${why}`);
}

function refOf(text: Json): Ref {
  if (typeof text !== "string") throw badRequestError('"$ref" is not a string');
  return parseRef(text);
}

function onlyMember(value: JsonObject, key: string): Json {
  if (Object.keys(value).length > 1) {
    throw badRequestError(
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
function describeValue(value: Json): string {
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
