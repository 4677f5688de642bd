/**
 * Sets values in the text of a YAML file. Comments, order, line ends and a byte order mark stay.
 * Indentation and the place of spaces and comments may change.
 *
 * @module
 */

import { isDeepStrictEqual } from "node:util";
import type { Document, Node, YAMLSeq } from "./yaml_main.ts";
import { isObject, memberOf } from "../core/json.ts";
import { unchangedFileError, uneditableError } from "../io/private_files.ts";
import { loadYaml } from "./yaml.ts";

/** A value to set at a path of keys; undefined removes the key. */
export interface YamlSetting {
  readonly at: readonly [section: string, ...names: string[]];
  readonly entry: unknown;
  /** Whether the members of the entry are added to the current value. */
  readonly adds?: boolean;
}

/**
 * Returns the text with these values set and no other value changed. Throws if that is not
 * possible; the error names `path`.
 */
export async function yamlWith(
  text: string,
  { path, settings }: { readonly path: string; readonly settings: readonly YamlSetting[] },
): Promise<string> {
  const yaml = await loadYaml();
  const byteOrderMark = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const before = text.slice(byteOrderMark.length).replaceAll("\r\n", "\n");
  try {
    const document = yaml.parseDocument(before, { version: "1.2", logLevel: "error" });
    let expected: unknown = yaml.parse(before) ?? {};
    for (const { at, entry } of settings.flatMap(splitSetting)) {
      const node = document.getIn(at, true);
      // Only the scalar is replaced, so that a comment after it stays.
      if (yaml.isScalar(node) && entry !== undefined && Object(entry) !== entry) {
        node.value = entry;
      } else if (yaml.isSeq(node) && isEditOf(node.toJSON(), entry)) {
        setItems(document, node, entry);
      } else setValue(document, { at, entry });
      expected = withEntry(expected, { at, entry });
    }
    const after = withOldSpaces(document.toString({ lineWidth: 0 }), before);
    if (!isDeepStrictEqual(toJson(yaml.parse(after)), toJson(expected))) {
      throw uneditableError(path);
    }
    return byteOrderMark + (/^[^\n]*\r\n/.test(text) ? after.replaceAll("\n", "\r\n") : after);
  } catch (error) {
    throw unchangedFileError(path, error);
  }
}

/**
 * Returns a text whose lines have the same spaces within brackets as before. The library writes all
 * lines with the same spaces.
 */
function withOldSpaces(after: string, before: string): string {
  const dense = (line: string) => line.replace(/([[{]) +/g, "$1").replace(/ +([\]}])/g, "$1");
  const lines = new Map(before.split("\n").map((line) => [dense(line), line]));
  return after.split("\n").map((line) => lines.get(dense(line)) ?? line).join("\n");
}

/**
 * Returns the text with an item added to a list, which is created if it is missing. Other lines
 * change only if the list is written in one line. Throws if that is not possible; the error names
 * `path`.
 */
export async function withListItem(
  text: string,
  { path, section, item }: {
    readonly path: string;
    readonly section: string;
    readonly item: unknown;
  },
): Promise<string> {
  const yaml = await loadYaml();
  const end = /^[^\n]*\r\n/.test(text) ? "\r\n" : "\n";
  try {
    const document = yaml.parseDocument(text, { version: "1.2", logLevel: "error" });
    const list = document.get(section, true);
    const before = yaml.parse(text) ?? {};
    const all = [...before[section] ?? [], item];
    const isBlock = yaml.isSeq(list) && list.flow !== true;
    if (all.length > 1 && !isBlock || before[section]?.length === 0) {
      return await yamlWith(text, { path, settings: [{ at: [section], entry: all }] });
    }
    const last = yaml.isSeq(list) ? list.items.at(-1) : undefined;
    const [from = 0, valueEnd = 0] = isNode(last) ? last.range ?? [] : [];
    const has = document.has(section);
    // A section without a value may have a comment on its line.
    const key = new RegExp(`^${section}:.*$`, "m").exec(text);
    const keyEnd = has && key !== null ? key.index + key[0].trimEnd().length : text.length;
    const insertAt = last === undefined ? keyEnd : valueEnd;
    // An item begins after "- ", in the same column as the others.
    const column = Math.max(from - text.lastIndexOf("\n", from - 1) - 3, 0);
    const indent = " ".repeat(last === undefined ? 2 : column);
    const lines = yaml.stringify([item]).trimEnd().split("\n").map((line) => indent + line);
    const addedText = [...has ? [] : [`${section}:`], ...lines].join(end);
    const [head, rest] = [text.slice(0, insertAt), text.slice(insertAt)];
    const gap = head === "" || head.endsWith("\n") ? "" : end;
    const after = head + gap + addedText + (/^\r?\n/.test(rest) ? "" : end) + rest;
    const expected = { ...before, [section]: all };
    if (isDeepStrictEqual(toJson(yaml.parse(after)), toJson(expected))) return after;
  } catch (error) {
    throw unchangedFileError(path, error);
  }
  throw uneditableError(path);
}

/**
 * Returns the text without the items of a list that have these names. Throws if that is not
 * possible without another change.
 */
export async function withoutListItems(
  text: string,
  { path, section, names }: {
    readonly path: string;
    readonly section: string;
    readonly names: readonly string[];
  },
): Promise<string> {
  const yaml = await loadYaml();
  const isCrlf = /^[^\n]*\r\n/.test(text);
  try {
    const before = text.replaceAll("\r\n", "\n");
    const document = yaml.parseDocument(before, { version: "1.2", logLevel: "error" });
    const value = yaml.parse(before) ?? {};
    const list = document.get(section, true);
    const isNamed = (item: unknown) => isObject(item) && names.includes(String(item.name));
    if (yaml.isSeq(list) && Array.isArray(value[section])) {
      list.items = list.items.filter((_, index) => !isNamed(value[section][index]));
      const after = document.toString({ lineWidth: 0 });
      const rest = value[section].filter((item: unknown) => !isNamed(item));
      const expected = { ...value, [section]: rest };
      if (isDeepStrictEqual(toJson(yaml.parse(after)), toJson(expected))) {
        return isCrlf ? after.replaceAll("\n", "\r\n") : after;
      }
    }
  } catch (error) {
    throw unchangedFileError(path, error);
  }
  throw uneditableError(path);
}

/** Splits a setting into settings of single members. */
function splitSetting({ at, entry, adds }: YamlSetting): readonly YamlSetting[] {
  if (!adds) return [{ at, entry }];
  return Object.entries(Object(entry))
    .map(([name, member]) => ({ at: [...at, name], entry: member }));
}

function setValue(document: Document, { at, entry }: YamlSetting): void {
  if (entry === undefined) return void (document.hasIn(at) && document.deleteIn(at));
  // A section with only comments is null in YAML, and no value can be set in null.
  for (let depth = 1; depth < at.length; depth++) {
    const above = at.slice(0, depth);
    const empty = document.getIn(above, true);
    if (document.getIn(above) !== null) continue;
    const section = document.createNode({});
    section.commentBefore = isNode(empty) ? empty.comment ?? empty.commentBefore ?? null : null;
    document.setIn(above, section);
  }
  document.setIn(at, document.createNode(entry));
}

/** Replaces the texts of a list. Texts that stay keep their comments. */
function setItems(document: Document, list: YAMLSeq, texts: readonly string[]): void {
  list.items = list.items.filter((item) => texts.includes(String(item)));
  for (const text of texts.slice(list.items.length)) list.add(document.createNode(text));
}

/**
 * Returns whether a list of texts becomes `after` if some texts are removed and others are added at
 * the end.
 */
export function isEditOf(before: readonly unknown[], after: unknown): after is readonly string[] {
  if (!Array.isArray(after) || after.some((item) => typeof item !== "string")) return false;
  const common = before.filter((item) => after.includes(item));
  return isDeepStrictEqual(common, after.slice(0, common.length));
}

function isNode(value: unknown): value is Node {
  return isObject(value);
}

/**
 * Returns plain data with a value set, also for a name such as `__proto__`. Values that are not
 * objects stay unchanged; the comparison then finds the difference.
 */
export function withEntry(data: unknown, { at: [first, ...rest], entry }: {
  readonly at: readonly string[];
  readonly entry: unknown;
}): unknown {
  if (first === undefined || !isObject(data)) return data;
  const member = memberOf(data, first);
  if (entry === undefined && member === undefined) return data;
  return {
    ...data,
    [first]: rest.length === 0 ? entry : withEntry(member ?? {}, { at: rest, entry }),
  };
}

/** Returns a value as JSON has it, without keys that are undefined. */
export function toJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value) ?? "null");
}
