/**
 * Describes the shape of a value without its content: names, types and sizes.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import { type Json, setMember } from "../core/json.ts";

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
  const shapes: Record<string, Json> = {};
  for (const [index, name] of names.entries()) {
    if (index === MOST_NAMES) {
      shapes["…"] = `${names.length - index} more`;
      break;
    }
    const shownName = NAME.test(name) ? name : `<name ${index + 1}: ${name.length} characters>`;
    setMember(shapes, shownName, argumentShape(Reflect.get(value, name), depth + 1));
  }
  return shapes;
}

/**
 * Counts the characters of all texts in a value, and eight for each other value. Stops after 10,000
 * values, to limit the time that a large result takes.
 */
export function argumentSize(value: unknown): number {
  const stack: unknown[] = [value];
  let size = 0;
  for (let count = 0; stack.length > 0 && count < MOST_VALUES; count++) {
    const next = stack.pop();
    if (typeof next === "string") size += next.length;
    else if (typeof next === "object" && next !== null) pushValues(stack, next);
    else size += 8;
  }
  return size;
}

/** Pushes the values of an object. Creates no array of them, because this runs for each call. */
function pushValues(stack: unknown[], object: object): void {
  let count = 0;
  if (Array.isArray(object)) {
    for (const item of object) {
      if (++count > MOST_VALUES) return;
      stack.push(item);
    }
    return;
  }
  const members = object as Readonly<Record<string, unknown>>;
  for (const name in members) {
    if (!Object.hasOwn(members, name)) continue;
    if (++count > MOST_VALUES) return;
    stack.push(members[name]);
  }
}
