/**
 * Writes the beginning of a JSON value in few characters, so that a reader sees its parts.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import { isLonger } from "../core/json_length.ts";
import { type Json, type JsonObject, visible } from "../core/json.ts";
import { shapeLine } from "./_page.ts";
import { isList } from "./_refs.ts";

const DEPTH_MAX = 4;
/** The least number of characters of a part that is shown by its value. */
const PART_MIN = 24;
const SHAPE_MAX = 80;
/** A text of this length is not cut. */
const TEXT_MIN = 60;
/** So many members of an object with many are shown in part. Further ones are often similar. */
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
  for (const one of list) {
    // The first element may be cut, and others are shown if they fit whole.
    if (parts.length > 0 && isLonger(one, remaining)) break;
    const part = sample(one, parts.length > 0 ? remaining : Math.floor(remaining / 2), depth + 1);
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
  let cut = 0;
  for (const [at, name] of names.entries()) {
    const key = JSON.stringify(name.length > SHAPE_MAX ? `${name.slice(0, SHAPE_MAX)}…` : name);
    remaining -= key.length + 2;
    if (remaining < PART_MIN && parts.length > 0) break;
    const share = Math.max(Math.floor(remaining / Math.min(names.length - at, 8)), PART_MIN);
    const one = value[name] ?? null;
    if (isLonger(one, Math.max(share, TEXT_MIN)) && names.length > MANY && ++cut > CUT_MAX) break;
    const part = sample(one, share, depth + 1);
    parts.push(`${key}:${part}`);
    remaining -= part.length;
  }
  const more = names.length - parts.length;
  return `{${[...parts, ...more > 0 ? [`… ${more} more`] : []].join(",")}}`;
}
