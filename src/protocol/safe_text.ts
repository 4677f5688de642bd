/**
 * Makes texts of servers safe to show: replaces invisible characters, and characters that reorder
 * text, by visible escapes. Keeps line breaks, emoji and the joiners of scripts.
 *
 * @module
 */

import type { ToolResult } from "./call.ts";
import { isObject } from "../core/json.ts";
import { textOfResult } from "../core/json_text.ts";
import { memoized } from "../core/memo.ts";

/** Matches texts that need no escapes. */
const SAFE_TEXT = /^[\n\t\x20-\x7e]*$/;
/**
 * Characters to escape: controls, tags, line separators, lone surrogates, and the invisible
 * characters of bidirectional text, annotations and programs.
 */
const HIDDEN = String
  .raw`[[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\p{Cs}\ufff9-\ufffb]--[\n\t]]`;
/** The first tag character. Tag characters have the order of ASCII. */
const FIRST_TAG = 0xe0000;
/** Scripts that form letters with joiners and non-joiners. */
const JOINING_SCRIPTS = [
  "Arab",
  "Syrc",
  "Mong",
  "Nkoo",
  "Mand",
  "Deva",
  "Beng",
  "Guru",
  "Gujr",
  "Orya",
]
  .concat("Taml", "Telu", "Knda", "Mlym", "Sinh", "Khmr", "Mymr", "Tibt")
  .map((script) => String.raw`\p{scx=${script}}`).join("");
/** The only flags that consist of tags: of England, Scotland and Wales. */
const FLAGS = ["gbeng", "gbsct", "gbwls"].map((region) =>
  `\u{1f3f4}${
    String.fromCodePoint(...[...region].map((letter) => FIRST_TAG + letter.charCodeAt(0)))
  }\u{e007f}`
).join("|");
/** Hidden characters that stay: in line breaks of Windows and in emoji, and joiners of letters. */
const ALLOWED = [
  String.raw`\r\n`,
  FLAGS,
  String.raw`(?<=\p{ExtPict}\ufe0f?\p{EMod}?)\u200d(?=\p{ExtPict})`,
  String.raw`(?<=\p{Emoji})[\ufe0e\ufe0f]`,
  String.raw`(?<=[${JOINING_SCRIPTS}])[\u200c\u200d]`,
  String.raw`(?<=\p{scx=Mong})[\u180b-\u180d\u180f]`,
  String.raw`(?<=\p{scx=Hani})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]`,
].join("|");
const PARTS = { source: `(${ALLOWED})|${HIDDEN}` };
const TAGS = { source: String.raw`${FLAGS}|([\u{e0000}-\u{e007f}])` };
/** Compiles a pattern when it is first used, because a start rarely needs one. */
const patternOf = memoized(({ source }: { readonly source: string }) => new RegExp(source, "gv"));
/** The first half of each tag character in UTF-16. */
const TAG_HALF = "\udb40";
/** The forms of `TAG_HALF` in a JSON text. Searching the text is faster than visiting all values. */
const TAG_TEXTS = [TAG_HALF, "\\udb40", "\\uDB40", "\\uDb40", "\\udB40"];
/** The members of a schema that are texts for people and models. */
const TEXT_KEYWORDS = ["title", "description", "$comment", "markdownDescription"];
/** Keywords whose values are data and not schemas. */
const VALUE_KEYWORDS = ["enum", "const", "default", "examples"];
/** The maximum depth of a schema that is made safe. No usable schema is nested deeper. */
const DEPTH_MAX = 300;
/** Keywords whose members have any name. */
const KEYWORDS_OF_NAMES = [
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
];

/**
 * Returns a text with visible escapes (`\u{202e}`) for hidden characters, except line breaks.
 * `mark` changes each escape, so that it differs from an escape that the author wrote.
 */
export function safeText(text: string, mark = (escape: string): string => escape): string {
  if (SAFE_TEXT.test(text)) return text;
  return text.replace(
    patternOf(PARTS),
    (part: string, plain?: string) => plain ?? mark(escapeOf(part)),
  );
}

/** Returns JSON with safe texts and unchanged names. Throws `RangeError` if it is too deep. */
export function safeTexts<T>(json: T): T {
  if (typeof json === "string") return safeText(json) as T;
  if (Array.isArray(json)) return mapMembers(json, (item) => safeTexts(item));
  return isObject(json) ? mapMembers(json, (value) => safeTexts(value)) : json;
}

/**
 * Returns a schema whose titles and descriptions are safe. Does not change names, patterns and data
 * (`enum`, `const`, `default`). Returns the same object if nothing changes.
 */
export function safeSchema<T>(schema: T, depth = 0): T {
  if (depth > DEPTH_MAX) return schema;
  const inner = (part: unknown) => safeSchema(part, depth + 1);
  if (Array.isArray(schema)) return mapMembers(schema, inner);
  if (!isObject(schema)) return schema;
  return mapMembers(schema, (value, key) => {
    if (VALUE_KEYWORDS.includes(key)) return value;
    if (TEXT_KEYWORDS.includes(key)) {
      return typeof value === "string" ? safeText(value) : inner(value);
    }
    if (key === "enumNames" && Array.isArray(value)) return mapMembers(value, safeString);
    if (KEYWORDS_OF_NAMES.includes(key) && isObject(value)) return mapMembers(value, inner);
    return inner(value);
  });
}

function safeString(value: unknown): unknown {
  return typeof value === "string" ? safeText(value) : value;
}

/** Returns an item of a list whose titles and descriptions are safe, as `safeSchema()` does. */
export function safeItem<T extends object>(item: T): T {
  return mapMembers(item, (value, key) => {
    if (TEXT_KEYWORDS.includes(key)) return safeString(value);
    if (key === "annotations" || key === "arguments" || key.endsWith("Schema")) {
      return safeSchema(value);
    }
    return value;
  });
}

/**
 * Adds a remark to a result whose texts have tag characters, which only models can read. The flags
 * of England, Scotland and Wales also consist of tag characters, and do not count.
 */
export function withTagRemark(result: ToolResult): ToolResult {
  const text = textOfResult(result);
  if (text !== undefined && !TAG_TEXTS.some((half) => text.includes(half))) return result;
  // Structured content is usually repeated as a text.
  const count = Math.max(countTagsIn(result.content), countTagsIn(result.structuredContent));
  if (count === 0) return result;
  const what = `${count} invisible tag character${count === 1 ? "" : "s"}`;
  const remark = `PML notes: this result has ${what} (U+E0000 to U+E007F), which can hide text`;
  return { ...result, content: [...result.content, { type: "text", text: remark }] };
}

/** Counts the tag characters in JSON, however deep it is. */
function countTagsIn(json: unknown): number {
  if (json === undefined) return 0;
  let count = 0;
  const remaining: unknown[] = [json];
  while (remaining.length > 0) {
    const one = remaining.pop();
    if (typeof one === "string") count += one.includes(TAG_HALF) ? countTags(one) : 0;
    else if (Array.isArray(one)) { for (const item of one) remaining.push(item); }
    else if (isObject(one)) { for (const key in one) remaining.push(one[key]); }
  }
  return count;
}

function countTags(text: string): number {
  return [...text.matchAll(patternOf(TAGS))].filter(([, tag]) => tag !== undefined).length;
}

function escapeOf(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

/** Maps the members of an object or a list. Returns the same object or list if nothing changes. */
function mapMembers<T extends object>(object: T, map: (value: unknown, key: string) => unknown): T {
  const entries = Object.entries(object).map(([key, value]) => [key, map(value, key)] as const);
  const isSame = entries.every(([key, value]) => Reflect.get(object, key) === value);
  if (isSame) return object;
  if (Array.isArray(object)) return entries.map(([, value]) => value) as unknown as T;
  return Object.fromEntries(entries) as T;
}
