/**
 * JSON as a type, and the line between what came from outside and plain data.
 *
 * @module
 */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  /** The value of a member. */
  readonly [key: string]: Json;
}

/** Tells whether a value is an object that is neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Gives a value if it is an object, and an empty one for anything else; the value is parsed JSON. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value as JsonObject : {};
}

/** Gives a value if it is a text, and an empty one for anything else. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/**
 * Writes JSON so that what is equal is written equally; throws for what has no such text. This is
 * not the package that digests are made with, because that would be loaded at every start.
 */
export function canonical(value: Json): string {
  return JSON.stringify(value, (key, each: unknown) => {
    const odd = typeof each === "number" && !Number.isFinite(each) ||
      typeof each === "string" && !each.isWellFormed();
    if (odd || !key.isWellFormed()) throw new TypeError("it is no JSON that can be sent");
    if (!isObject(each)) return each;
    return Object.fromEntries(Object.keys(each).sort().map((name) => [name, each[name]]));
  });
}

/** Gives an object without the members that are undefined. */
export function defined<T extends object>(value: T): Defined<T> {
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members) as Defined<T>; // of what is left, as it was
}

/** An object whose members that may be undefined may be missing instead. */
export type Defined<T> =
  & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> };

/**
 * Prints a text for a person: control, bidirectional and invisible characters become visible
 * escapes, and what is beyond `max` characters is cut with a mark.
 */
export function visible(text: string, max = 200): string {
  return shortened(text, max).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu, (character) => {
    const point = character.codePointAt(0) ?? 0;
    return `\\u{${point.toString(16)}}`;
  });
}

/** Prints a text as `visible` does, but for its line ends, which stay what they are. */
export function visibleLines(text: string, max: number): string {
  return shortened(text, max).split(/\r\n?|\n/).map((line) => visible(line, Infinity)).join("\n");
}

/** Prints several lines so that those after the first cannot be taken for lines beside them. */
export function inset(text: string, max: number): string {
  return visibleLines(text, max).replaceAll("\n", "\n    ");
}

function shortened(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max)}… (${text.length} characters)` : text;
}

/** Writes a name between quotes, made visible and bounded, as messages show what others sent. */
export function quoted(text: string, max = 80): string {
  return `"${visible(text, max)}"`;
}
