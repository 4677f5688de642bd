/**
 * Describes the shape of a value without its content: names, types and sizes.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import type { Json } from "../core/json.ts";

const DEEPEST = 2;
const MOST_NAMES = 32;
const MOST_VALUES = 10_000;
const NAME = /^[A-Za-z_$][A-Za-z0-9_$.-]{0,63}$/;

/**
 * Returns the shape of arguments. A name that does not look like a parameter is replaced by its
 * length, because objects from outside may have addresses and keys as names.
 */
export function argumentShape(value: unknown, depth = 0): Json {
  if (typeof value === "string") return `string(${value.length})`;
  if (Array.isArray(value)) return `array(${value.length})`;
  if (value === null) return "null";
  if (isExactNumber(value)) return "number";
  if (typeof value !== "object") return typeof value;
  const names = Object.keys(value);
  if (depth >= DEEPEST) return `object(${names.length})`;
  const shown = names.slice(0, MOST_NAMES).map((name, at) => {
    const shape = argumentShape(Reflect.get(value, name), depth + 1);
    return [NAME.test(name) ? name : `<name ${at + 1}: ${name.length} characters>`, shape] as const;
  });
  const left = names.length - shown.length;
  return Object.fromEntries(left > 0 ? [...shown, ["…", `${left} more`]] : shown);
}

/**
 * Counts the characters of all texts in a value, and eight for each other value. Stops after 10,000
 * values, to limit the time that a large result takes.
 */
export function argumentSize(value: unknown): number {
  const left: unknown[] = [value];
  let size = 0;
  for (let seen = 0; left.length > 0 && seen < MOST_VALUES; seen++) {
    const next = left.pop();
    if (typeof next === "string") size += next.length;
    else if (typeof next === "object" && next !== null) pushValues(left, next);
    else size += 8;
  }
  return size;
}

/** Pushes the values of an object, without an array of them: this runs for each call. */
function pushValues(left: unknown[], object: object): void {
  let count = 0;
  for (const name in object) {
    if (!Object.hasOwn(object, name)) continue;
    if (++count > MOST_VALUES) return;
    left.push(Reflect.get(object, name));
  }
}
