/**
 * Shows a part of a kept output: one page, or its shape in one line.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import { decoded, type Json, type JsonObject, visible } from "../core/json.ts";
import { bad, isList, partAt } from "./_refs.ts";

/** A parsed URI of a page: `pml://results/RUN.TASK?offset=0&limit=20#/json/pointer`. */
export interface PageRequest {
  /** The name of the output: `RUN.TASK`. */
  readonly name: string;
  readonly pointer: string;
  readonly offset: number;
  readonly limit: number | undefined;
  /** The lines of a text to return, such as `20-40`. */
  readonly lines?: string | undefined;
  /** A text: only the lines or values that contain it are returned. */
  readonly grep?: string | undefined;
}

/** The prefix of the URIs of kept outputs. */
export const RESULTS = "pml://results/";

/** The maximum length of a value on one page, in characters. */
const PAGE_CHARACTERS = 16_000;
const SHAPE_MAX = 300;
const SHAPE_DEPTH = 4;
const MEMBERS_SHOWN = 12;
const URI = /^([a-z2-7]+\.[A-Za-z0-9_-]+)(?:\?([^#]*))?(?:#(.*))?$/s;

/** The names of the parameters of a page. */
const PARAMETERS = ["pointer", "offset", "limit", "lines", "grep"] as const;
type Parameters = Partial<Record<typeof PARAMETERS[number], string>>;

/**
 * Parses the URI of a kept output, or its name with a pointer. Parameters in `more` replace those of
 * the URI. Throws BAD_ARGUMENTS.
 */
export function pageRequestOf(text: string, more: JsonObject = {}): PageRequest {
  const plain = text.startsWith(RESULTS) ? text.slice(RESULTS.length) : text;
  const [, name, query = "", fragment = ""] = URI.exec(plain) ?? [];
  if (name === undefined) throw bad(`it is not like ${RESULTS}RUN.TASK?offset=0&limit=20#/pointer`);
  // A model may not encode the "#" in a text to search for.
  const isText = fragment !== "" && !fragment.startsWith("/") && /(?:^|&)grep=/.test(query);
  const params = { ...parametersIn(isText ? `${query}#${fragment}` : query), ...textsOf(more) };
  const pointer = params.pointer ?? (isText ? "" : decoded(fragment));
  if (pointer !== "" && !pointer.startsWith("/")) throw bad('the pointer does not begin with "/"');
  if (params.grep === "") throw bad("`grep` is empty");
  return {
    name,
    pointer,
    offset: countOf(params.offset, "offset") ?? 0,
    limit: countOf(params.limit, "limit"),
    lines: params.lines,
    grep: params.grep,
  };
}

/** Parses a query. A plus sign is itself, and so is an `&` before no name of a parameter. */
function parametersIn(query: string): Parameters {
  const names = PARAMETERS.join("|");
  return Object.fromEntries(
    query.split(new RegExp(`&(?=(?:${names})=)`)).map((pair) => {
      const equals = pair.indexOf("=");
      return [pair.slice(0, equals), decoded(pair.slice(equals + 1))];
    }),
  );
}

function textsOf(more: JsonObject): Parameters {
  const names: readonly string[] = PARAMETERS;
  return Object.fromEntries(
    Object.entries(more).map(([name, value]) => {
      if (!names.includes(name)) throw bad(`it has no \`${name}\`, only ${names.join(", ")}`);
      if (typeof value === "object" && !isExactNumber(value)) {
        throw bad(`\`${name}\` is not a text`);
      }
      return [name, typeof value === "string" ? value : JSON.stringify(value)];
    }),
  );
}

/** Returns a page of a value: the elements, members or characters that fit, and the next offset. */
export function pageOf(whole: Json, { name, pointer, offset, limit }: PageRequest): JsonObject {
  const value = partAt(whole, { source: name, pointer });
  if (typeof value === "string") {
    const end = Math.min(
      offset + Math.min(limit ?? PAGE_CHARACTERS, PAGE_CHARACTERS),
      value.length,
    );
    return paged(value.slice(offset, end), { offset, end, total: value.length });
  }
  if (typeof value !== "object" || value === null || isExactNumber(value)) return { value };
  // An output may have very many members, so only those of the page are read.
  const names = isList(value) ? undefined : Object.keys(value);
  const { length: total } = names ?? value as readonly Json[];
  const last = Math.min(offset + (limit ?? total), total);
  const page: (readonly [string, Json])[] = [];
  let remaining = PAGE_CHARACTERS;
  for (let at = offset; at < last; at++) {
    const key = names?.[at] ?? String(at);
    const one = (value as JsonObject)[key] ?? null;
    const size = JSON.stringify(one).length + key.length;
    if (size > remaining && page.length > 0) break;
    remaining -= size;
    // A member that is larger than a page has its own pointer.
    page.push([key, size > PAGE_CHARACTERS ? `too large, ${shapeLine(one)}` : one]);
  }
  const content = isList(value) ? page.map(([, one]) => one) : Object.fromEntries(page);
  return paged(content, { offset, end: offset + page.length, total });
}

/** Returns the shape of a value in one line: types and names, no values. */
export function shapeLine(value: Json): string {
  return visible(shape(value, 0), SHAPE_MAX);
}

function paged(
  value: Json,
  { offset, end, total }: { readonly offset: number; readonly end: number; readonly total: number },
): JsonObject {
  return { value, ...(offset > 0 && { offset }), total, ...(end < total && { next: end }) };
}

function shape(value: Json, depth: number): string {
  if (typeof value === "string") return value.length > 100 ? `string(${value.length})` : "string";
  if (value === null) return "null";
  if (isExactNumber(value)) return "number";
  if (typeof value !== "object") return typeof value;
  if (isList(value)) {
    const [first] = value;
    const inner = first === undefined || depth >= SHAPE_DEPTH
      ? ""
      : ` of ${shape(first, depth + 1)}`;
    return `array(${value.length})${inner}`;
  }
  const names = Object.keys(value);
  if (depth >= SHAPE_DEPTH) return `object(${names.length})`;
  const members = names.slice(0, MEMBERS_SHOWN).map((key) =>
    `${/^\w+$/.test(key) ? key : JSON.stringify(key)}: ${
      shape((value as JsonObject)[key] ?? null, depth + 1)
    }`
  );
  return `{${[...members, ...(names.length > MEMBERS_SHOWN ? ["…"] : [])].join(", ")}}`;
}

function countOf(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw bad(`\`${name}\` is not a number`);
  return Number(text);
}
