/**
 * Compares the length of a JSON value with a maximum, without writing the JSON.
 *
 * @module
 */

import { isExactNumber } from "./exact_number.ts";

/**
 * Returns whether a value of plain JSON has more than `max` characters, counted without escapes.
 * Stops counting above `max`.
 */
export function isLonger(value: unknown, max: number): boolean {
  let remaining = max;
  const stack = [value];
  while (stack.length > 0 && remaining >= 0) {
    const part = stack.pop();
    remaining -= ownLength(part);
    // `ownLength` counts a character for each element, so a long array ends the loop before this.
    if (remaining >= 0) pushMembers(stack, part);
  }
  return remaining < 0;
}

/** Returns the length of a value without its members. */
function ownLength(part: unknown): number {
  if (typeof part === "string") return part.length + 2;
  return Array.isArray(part) ? part.length + 2 : 4;
}

function pushMembers(stack: unknown[], part: unknown): void {
  if (typeof part !== "object" || part === null || isExactNumber(part)) return;
  if (Array.isArray(part)) { for (const one of part) stack.push(one); }
  else for (const entry of Object.entries(part)) stack.push(entry[0], entry[1]);
}
