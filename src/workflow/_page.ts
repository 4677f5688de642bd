/**
 * Shows a part of a kept output: one page, or its shape in one line.
 *
 * @module
 */

import { isExactNumber } from "../core/exact_number.ts";
import { decodePercents, type Json, type JsonObject, visible } from "../core/json.ts";
import { badRequestError, isList, partAt } from "./_refs.ts";

/** A parsed URI of a page: `pml://results/RUN.TASK?offset=0&limit=20#/json/pointer`. */
export interface PageRequest {
  /** The name of the output: `RUN.TASK`. */
  readonly name: string;
  readonly pointer: string;
  readonly offset: number;
  readonly limit: number | undefined;
  /** The lines of a text to return, such as `20-40`. */
  readonly lines?: string | undefined;
  /** A text to search for: only the lines or values that contain it are returned. */
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
 * Parses the URI of a kept output, or its name with a pointer. Parameters in `overrides` replace
 * the parameters of the URI. Throws BAD_ARGUMENTS.
 */
export function parsePageRequest(text: string, overrides: JsonObject = {}): PageRequest {
  const plain = text.startsWith(RESULTS) ? text.slice(RESULTS.length) : text;
  const [, name, query = "", fragment = ""] = URI.exec(plain) ?? [];
  if (name === undefined) {
    throw badRequestError(`the URI is not like ${RESULTS}RUN.TASK?offset=0&limit=20#/pointer`);
  }
  // Models often do not encode a "#" in the text of `grep`, so it looks like a fragment.
  const isGrepText = fragment !== "" && !fragment.startsWith("/") && /(?:^|&)grep=/.test(query);
  const params = {
    ...parseQuery(isGrepText ? `${query}#${fragment}` : query),
    ...parseOverrides(overrides),
  };
  const pointer = params.pointer ?? (isGrepText ? "" : decodePercents(fragment));
  if (pointer !== "" && !pointer.startsWith("/")) {
    throw badRequestError('the pointer does not begin with "/"');
  }
  if (params.grep === "") throw badRequestError("`grep` is empty");
  return {
    name,
    pointer,
    offset: parseCount(params.offset, "offset") ?? 0,
    limit: parseCount(params.limit, "limit"),
    lines: params.lines,
    grep: params.grep,
  };
}

/**
 * Parses a query. `+` is not a space, and `&` separates only if the name of a parameter follows.
 */
function parseQuery(query: string): Parameters {
  const names = PARAMETERS.join("|");
  return Object.fromEntries(
    query.split(new RegExp(`&(?=(?:${names})=)`)).map((pair) => {
      const equals = pair.indexOf("=");
      return [pair.slice(0, equals), decodePercents(pair.slice(equals + 1))];
    }),
  );
}

function parseOverrides(overrides: JsonObject): Parameters {
  const names: readonly string[] = PARAMETERS;
  return Object.fromEntries(
    Object.entries(overrides).map(([name, value]) => {
      if (!names.includes(name)) {
        throw badRequestError(`there is no parameter \`${name}\`, only ${names.join(", ")}`);
      }
      if (typeof value === "object" && !isExactNumber(value)) {
        throw badRequestError(`\`${name}\` is not a text`);
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
    return toPage(value.slice(offset, end), { offset, end, total: value.length });
  }
  if (typeof value !== "object" || value === null || isExactNumber(value)) return { value };
  // An output may have very many members, so only the members of the page are read.
  const names = isList(value) ? undefined : Object.keys(value);
  const { length: total } = names ?? value as readonly Json[];
  const last = Math.min(offset + (limit ?? total), total);
  const page: (readonly [string, Json])[] = [];
  let remaining = PAGE_CHARACTERS;
  for (let at = offset; at < last; at++) {
    const key = names?.[at] ?? String(at);
    const member = (value as JsonObject)[key] ?? null;
    const size = JSON.stringify(member).length + key.length;
    if (size > remaining && page.length > 0) break;
    remaining -= size;
    // A member that is larger than a page can be read with its own pointer.
    page.push([key, size > PAGE_CHARACTERS ? `too large, ${shapeLine(member)}` : member]);
  }
  const content = isList(value) ? page.map(([, member]) => member) : Object.fromEntries(page);
  return toPage(content, { offset, end: offset + page.length, total });
}

/** Returns the shape of a value in one line: types and names, no values. */
export function shapeLine(value: Json): string {
  return visible(shape(value, 0), SHAPE_MAX);
}

function toPage(
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

function parseCount(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw badRequestError(`\`${name}\` is not a number`);
  return Number(text);
}
