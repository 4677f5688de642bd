/**
 * Makes texts of servers safe to show: invisible characters, and those that reorder others, become
 * visible escapes. Line ends, emoji and the joiners of scripts stay.
 *
 * @module
 */

import type { ToolResult } from "./call.ts";
import { isObject } from "../core/json.ts";
import { textOfResult } from "../core/json_text.ts";
import { memoized } from "../core/memo.ts";

/** Matches texts that need no escapes. */
const PLAIN = /^[\n\t\x20-\x7e]*$/;
/**
 * Characters to escape: controls, tags, line separators, lone surrogates, and the invisible
 * characters of bidirectional text, annotations and programs.
 */
const HIDDEN = String
  .raw`[[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\p{Cs}\ufff9-\ufffb]--[\n\t]]`;
/** Where the tag characters begin that have the same order as ASCII. */
const TAG = 0xe0000;
/** Scripts that form letters with joiners and non-joiners. */
const JOINING = ["Arab", "Syrc", "Mong", "Nkoo", "Mand", "Deva", "Beng", "Guru", "Gujr", "Orya"]
  .concat("Taml", "Telu", "Knda", "Mlym", "Sinh", "Khmr", "Mymr", "Tibt")
  .map((script) => String.raw`\p{scx=${script}}`).join("");
/** The only flags that consist of tags: of England, Scotland and Wales. */
const FLAGS = ["gbeng", "gbsct", "gbwls"].map((region) =>
  `\u{1f3f4}${String.fromCodePoint(...[...region].map((one) => TAG + one.charCodeAt(0)))}\u{e007f}`
).join("|");
/** Kept: line ends of Windows, emoji, one joiner or selector after a character that takes it. */
const KEPT = [
  String.raw`\r\n`,
  FLAGS,
  String.raw`(?<=\p{ExtPict}\ufe0f?\p{EMod}?)\u200d(?=\p{ExtPict})`,
  String.raw`(?<=\p{Emoji})[\ufe0e\ufe0f]`,
  String.raw`(?<=[${JOINING}])[\u200c\u200d]`,
  String.raw`(?<=\p{scx=Mong})[\u180b-\u180d\u180f]`,
  String.raw`(?<=\p{scx=Hani})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]`,
].join("|");
const PARTS = { source: `(${KEPT})|${HIDDEN}` };
const TAGS = { source: String.raw`${FLAGS}|([\u{e0000}-\u{e007f}])` };
/** Compiles a pattern when it is first used, because a start rarely needs one. */
const patternOf = memoized(({ source }: { readonly source: string }) => new RegExp(source, "gv"));
/** The first half of each tag character in UTF-16. */
const TAG_HALF = "\udb40";
/** Its forms in JSON text. Searching a large text is faster than visiting its values. */
const TAG_TEXTS = [TAG_HALF, "\\udb40", "\\uDB40", "\\uDb40", "\\udB40"];
/** The members of a schema that are texts for people and models. */
const TEXTS = ["title", "description", "$comment", "markdownDescription"];
/** Keywords whose values are compared with values, and so are not schemas. */
const VALUES = ["enum", "const", "default", "examples"];
/** No usable tool schema or form is nested this deep. */
const DEEPEST = 300;
/** Keywords whose members have any name. */
const NAMED = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/** Returns a text with visible escapes (`\u{202e}`) for hidden characters. Line ends stay. */
export function safeText(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(patternOf(PARTS), (part: string, plain?: string) => plain ?? escaped(part));
}

/** Returns JSON with safe texts and unchanged names. Throws `RangeError` if it is too deep. */
export function safeTexts<T>(json: T): T {
  if (typeof json === "string") return safeText(json) as T;
  if (Array.isArray(json)) return mapped(json, (one) => safeTexts(one));
  return isObject(json) ? mapped(json, (one) => safeTexts(one)) : json;
}

/**
 * Returns a schema whose titles and descriptions are safe. Names, patterns and values that are
 * compared (`enum`, `const`, `default`) stay. Returns the same object if nothing changes.
 */
export function safeSchema<T>(schema: T, depth = 0): T {
  if (depth > DEEPEST) return schema;
  const inner = (one: unknown) => safeSchema(one, depth + 1);
  if (Array.isArray(schema)) return mapped(schema, inner);
  if (!isObject(schema)) return schema;
  return mapped(schema, (value, key) => {
    if (VALUES.includes(key)) return value;
    if (TEXTS.includes(key)) return typeof value === "string" ? safeText(value) : inner(value);
    if (key === "enumNames" && Array.isArray(value)) return mapped(value, safeString);
    if (NAMED.includes(key) && isObject(value)) return mapped(value, inner);
    return inner(value);
  });
}

function safeString(value: unknown): unknown {
  return typeof value === "string" ? safeText(value) : value;
}

/** Returns an item of a list whose titles and descriptions are safe, as `safeSchema()` does. */
export function safeItem<T extends object>(item: T): T {
  return mapped(item, (value, key) => {
    if (TEXTS.includes(key)) return safeString(value);
    if (key === "annotations" || key === "arguments" || key.endsWith("Schema")) {
      return safeSchema(value);
    }
    return value;
  });
}

/**
 * Returns a result with a remark if its texts have tag characters, which only models
 * read. The flags of England, Scotland and Wales, which consist of some, do not count.
 */
export function withTagRemark(result: ToolResult): ToolResult {
  const text = textOfResult(result);
  if (text !== undefined && !TAG_TEXTS.some((half) => text.includes(half))) return result;
  // Structured content is usually repeated as a text.
  const count = Math.max(tagCount(result.content), tagCount(result.structuredContent));
  if (count === 0) return result;
  const what = `${count} invisible tag character${count === 1 ? "" : "s"}`;
  const remark = `PML notes: this result has ${what} (U+E0000 to U+E007F), which can hide text`;
  return { ...result, content: [...result.content, { type: "text", text: remark }] };
}

/** Counts the tag characters in JSON, however deep it is. */
function tagCount(json: unknown): number {
  let count = 0;
  const open = [json];
  while (open.length > 0) {
    const one = open.pop();
    if (typeof one === "string") count += one.includes(TAG_HALF) ? tagsIn(one) : 0;
    else if (typeof one === "object") {
      for (const key in one) open.push(Reflect.get(one ?? {}, key));
    }
  }
  return count;
}

function tagsIn(text: string): number {
  return [...text.matchAll(patternOf(TAGS))].filter(([, tag]) => tag !== undefined).length;
}

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)?.toString(16)}}`;
}

/** Maps the members of an object or a list. Returns the same one if nothing changes. */
function mapped<T extends object>(object: T, map: (value: unknown, key: string) => unknown): T {
  const entries = Object.entries(object).map(([key, value]) => [key, map(value, key)] as const);
  const isSame = entries.every(([key, value]) => Reflect.get(object, key) === value);
  if (isSame) return object;
  if (Array.isArray(object)) return entries.map(([, value]) => value) as unknown as T;
  return Object.fromEntries(entries) as T;
}
