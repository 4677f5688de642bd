/**
 * Shortens a JSON value to its beginning and the shapes of its parts.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import { isLonger } from "../core/json_length.ts";
import { type Json, type JsonObject, visible } from "../core/json.ts";
import { shapeLine } from "./_page.ts";
import { isList } from "./_refs.ts";

/** Parts at this depth are shown by their shapes. */
const DEPTH_MAX = 4;
/** If fewer characters are left for a part, its shape is shown instead. */
const PART_MIN = 24;
const SHAPE_MAX = 80;
/** A text of at most this length is not cut. */
const TEXT_MIN = 60;
/**
 * An object with more than `MANY` members shows at most `CUT_MAX` shortened members, because
 * further members are often similar.
 */
const [CUT_MAX, MANY] = [3, 12];

/**
 * Returns the beginning of a value as JSON, in about `max` characters. Shapes of values, and counts
 * of elements, replace the rest.
 */
export function sampleOf(value: Json, max: number): string {
  return sample(value, max, 0);
}

function sample(value: Json, max: number, depth: number): string {
  if (typeof value === "string") {
    return value.length <= Math.max(max - 2, TEXT_MIN)
      ? JSON.stringify(value)
      : cutText(value, max);
  }
  if (typeof value !== "object" || value === null || isExactNumber(value)) {
    return JSON.stringify(value);
  }
  if (!isLonger(value, max)) return JSON.stringify(value);
  if (max < PART_MIN || depth >= DEPTH_MAX) return visible(shapeLine(value), SHAPE_MAX);
  return isList(value) ? sampleList(value, max, depth) : sampleObject(value, max, depth);
}

function cutText(text: string, max: number): string {
  const start = text.slice(0, Math.max(max - 20, 8));
  return `${JSON.stringify(start.toWellFormed())}… (${text.length} characters)`;
}

function sampleList(list: readonly Json[], max: number, depth: number): string {
  const parts: string[] = [];
  let remaining = max;
  for (const member of list) {
    // The first element may be cut. Further elements are shown only if they fit completely.
    if (parts.length > 0 && isLonger(member, remaining)) break;
    const part = sample(
      member,
      parts.length > 0 ? remaining : Math.floor(remaining / 2),
      depth + 1,
    );
    parts.push(part);
    remaining -= part.length + 1;
  }
  const more = list.length - parts.length;
  return `[${[...parts, ...more > 0 ? [`… ${more} more`] : []].join(",")}]`;
}

function sampleObject(value: JsonObject, max: number, depth: number): string {
  const names = Object.keys(value);
  const parts: string[] = [];
  let remaining = max;
  let cutCount = 0;
  for (const [index, name] of names.entries()) {
    const key = JSON.stringify(name.length > SHAPE_MAX ? `${name.slice(0, SHAPE_MAX)}…` : name);
    remaining -= key.length + 2;
    if (remaining < PART_MIN && parts.length > 0) break;
    const share = Math.max(Math.floor(remaining / Math.min(names.length - index, 8)), PART_MIN);
    const member = value[name] ?? null;
    if (
      isLonger(member, Math.max(share, TEXT_MIN)) && names.length > MANY && ++cutCount > CUT_MAX
    ) {
      break;
    }
    const part = sample(member, share, depth + 1);
    parts.push(`${key}:${part}`);
    remaining -= part.length;
  }
  const more = names.length - parts.length;
  return `{${[...parts, ...more > 0 ? [`… ${more} more`] : []].join(",")}}`;
}
