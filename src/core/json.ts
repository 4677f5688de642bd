/**
 * JSON as a type, and checks that turn unknown values into plain data.
 *
 * @module
 */

import { PmlError } from "./errors.ts";
import { isExactNumber } from "./exact_number.ts";

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  /** The value of a member. */
  readonly [key: string]: Json;
}

/**
 * Returns whether a value is an object, and neither null, nor an array, nor an exact number.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { isObject } from "@casys/pml/registry";
 *
 * assert.equal(isObject({}), true);
 * assert.equal(isObject([]), false);
 * ```
 */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    !("rawJSON" in value && isExactNumber(value));
}

/** Returns whether an object has a member of one of these names. */
export function hasAny(object: object, names: readonly string[]): boolean {
  for (const name of names) if (name in object) return true;
  return false;
}

const EMPTY: JsonObject = Object.freeze({});

/**
 * Returns a value of parsed JSON if it is an object, and an empty object otherwise.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { objectOf } from "@casys/pml/registry";
 *
 * assert.equal(objectOf(JSON.parse('{"name":"weather"}')).name, "weather");
 * assert.equal(objectOf(JSON.parse("null")).name, undefined);
 * ```
 */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value as JsonObject : EMPTY;
}

/**
 * Returns a value if it is a string, and an empty string otherwise.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { textOf } from "@casys/pml/registry";
 *
 * assert.equal(textOf("weather"), "weather");
 * assert.equal(textOf(42), "");
 * ```
 */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns a value of parsed JSON if it is an array, and an empty array otherwise. */
export function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the strings in an array, and an empty array for any other value. */
export function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/**
 * Returns the same JSON text for equal values, by sorting keys. Throws BAD_ARGUMENTS for values
 * that JSON cannot represent. The package that computes digests has such a function, but every
 * start would have to load it.
 */
export function canonicalJson(value: Json): string {
  return sortedJsonText(value, (key, each) => {
    const isRepresentable = typeof each !== "number" || Number.isFinite(each);
    if (!isRepresentable || !`${key},${textOf(each)}`.isWellFormed()) {
      throw new PmlError("BAD_ARGUMENTS", "JSON cannot represent the value");
    }
  });
}

/**
 * Does the same as `canonicalJson`, but does not throw: values that JSON cannot represent become
 * the text that `JSON.stringify` writes for them.
 */
export function sortedJsonText(
  value: Json,
  check?: (key: string, each: unknown) => void,
): string {
  return JSON.stringify(value, (key, each: unknown) => {
    check?.(key, each);
    if (!isObject(each)) return each;
    return Object.fromEntries(Object.keys(each).sort().map((name) => [name, each[name]]));
  });
}

/** Returns an object without the members that are undefined. */
export function withoutUndefined<T extends object>(value: T): Defined<T> {
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members) as Defined<T>; // only undefined members are missing
}

/** The type of an object in which members may be missing instead of undefined. */
export type Defined<T> =
  & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> };

/**
 * Returns a text that is safe to show to a user: control, bidirectional and invisible characters
 * become visible escapes, and a text longer than `max` characters is cut with a mark.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { visible } from "@casys/pml/registry";
 *
 * assert.equal(visible("a\tb"), "a\\u{9}b");
 * assert.equal(visible("abcdef", 3), "abc… (6 characters)");
 * ```
 */
export function visible(text: string, max = 200): string {
  return shortened(text, max).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu, (character) => {
    const point = character.codePointAt(0) ?? 0;
    return `\\u{${point.toString(16)}}`;
  });
}

/** Does the same as `visible`, but keeps line breaks. */
export function visibleLines(text: string, max: number): string {
  return shortened(text, max).split(/\r\n?|\n/).map((line) => visible(line, Infinity)).join("\n");
}

/**
 * Returns a text with all lines but the first indented, so that they do not look like lines of PML.
 */
export function indentLines(text: string, max: number): string {
  return visibleLines(text, max).replaceAll("\n", "\n    ");
}

function shortened(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}… (${text.length} characters)` : text;
}

/**
 * Returns a text from outside in quotes, with the escapes and the maximum length of `visible`.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { quoted } from "@casys/pml/registry";
 *
 * assert.equal(quoted("weather"), '"weather"');
 * ```
 */
export function quoted(text: string, max = 80): string {
  return `"${visible(text, max)}"`;
}

/** Returns all texts in a value and the names of all its members, at any depth. */
export function* textsIn(value: unknown): Generator<string> {
  const stack = [value];
  while (stack.length > 0) {
    const part = stack.pop();
    if (typeof part === "string") yield part;
    if (typeof part !== "object" || part === null || isExactNumber(part)) continue;
    if (!Array.isArray(part)) yield* Object.keys(part);
    for (const one of Object.values(part).reverse()) stack.push(one);
  }
}

/** Sets a member, also one with the name `__proto__`: an assignment would set the prototype. */
export function setMember(object: Record<string, Json>, name: string, value: Json): void {
  if (name !== "__proto__") object[name] = value;
  else {
    const attributes = { enumerable: true, configurable: true, writable: true };
    Object.defineProperty(object, name, { ...attributes, value });
  }
}

/** Returns an object's own member; undefined for an inherited member, such as `constructor`. */
export function memberOf<T>(object: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Returns a text with its percent codes decoded; unchanged if they are not valid. */
export function decodePercents(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
