/**
 * Adds the entry of PML, or another value, to the text of a JSON, TOML or YAML file. No other
 * value and no comment changes.
 *
 * @module
 */

import { isDeepStrictEqual } from "node:util";
import type { Node } from "jsonc-parser";
import { parseClientJson, parseClientYaml, parseToml } from "../config/clients.ts";
import { withoutCmd } from "../config/windows_command.ts";
import { isObject, memberOf, objectOf, textOf, textsOf } from "../core/json.ts";
import type { ClientEntryValue, ClientForm } from "./_client_form.ts";
import { fileNotChanged, uneditable, unlike } from "./_files.ts";
import { isAdded, plain, withEntry, withListItem, type YamlSetting } from "../config/yaml_text.ts";

type Jsonc = typeof import("jsonc-parser");

const COMMENT = /\/\/.*|\/\*[^]*?\*\//g;

/** The name of PML's entry in the file of a client. */
export const NAME = "pml";
/** The keys of an entry that name its command or address. */
const LEADING = ["command", "args", "url", "serverUrl", "httpUrl"];

/** The position of a value in a file. */
interface FilePosition extends YamlSetting {
  readonly path: string;
}

/** The edit of a client's file. */
export interface ClientEdit {
  /** The new text of the file. */
  readonly text: string;
  /**
   * The lines to show to the user: those that the edit adds, or the whole entry if it replaces one.
   */
  readonly added: readonly string[];
  /**
   * The present entry with the name `pml`, as JSON, if it is not one of PML. The text is unchanged.
   */
  readonly other?: string | undefined;
}

/**
 * Returns the edit that adds PML to the text of a client's file; undefined if the text contains PML
 * already. If another server has the name `pml`, the edit changes nothing. Throws if the text cannot
 * be edited; the error names `path`.
 */
export async function editClientText(
  text: string,
  path: string,
  { at, entry: wanted, instead, input, keeps = [] }: ClientForm,
): Promise<ClientEdit | undefined> {
  if (/\.ya?ml$/.test(path)) return await editYaml(text, path, { at, entry: wanted });
  const isToml = path.endsWith(".toml");
  const whole = await parsed(text, path);
  const present = entryIn(whole, at, path);
  if (isPml(present, wanted)) return undefined;
  const own = Object.entries(objectOf(present)).filter(([key]) => keeps.includes(key));
  const permission = Object.fromEntries(own);
  const entry = { ...wanted, ...permission };
  const replaced = instead.map((one) => plain({ ...one, ...permission }));
  const before = isObject(present) &&
      replaced.some((one) => isDeepStrictEqual(plain(present), one))
    ? present
    : undefined;
  if (present !== undefined && before === undefined) {
    return { text, added: [], other: JSON.stringify(present) };
  }
  const withInputs = input === undefined ? text : await withInput(text, { path, whole, input });
  const target = { path, at: [...at, NAME], entry } as const;
  const after = isToml
    ? await withTable(text, { ...target, before })
    : await withValue(withInputs, target);
  // If the edit replaces an entry, the user sees each line of the new one.
  const withoutEntry = isToml || before === undefined
    ? withInputs
    : await withValue(withInputs, { ...target, entry: undefined });
  return {
    text: after,
    added: [...addedLines(text, withInputs), ...addedLines(withoutEntry, after)],
  };
}

/**
 * Returns PML's entry in the text of a client's file with an object of servers; undefined if there
 * is none.
 */
export async function presentEntry(
  text: string,
  path: string,
  at: ClientForm["at"],
): Promise<unknown> {
  return entryIn(await parsed(text, path), at, path);
}

/** Returns the value of a client's file. Throws if it has no object. */
async function parsed(text: string, path: string): Promise<unknown> {
  return await (path.endsWith(".toml") ? parseToml : read)(text.replace(/^\uFEFF/, ""), path);
}

function entryIn(whole: unknown, at: ClientForm["at"], path: string): unknown {
  const servers = at.reduce<unknown>(
    (value, name) => isObject(value) ? value[name] ?? {} : value,
    whole,
  );
  if (!isObject(servers)) throw fileNotChanged(path, `"${at.join(".")}" is not an object`);
  return memberOf(servers, NAME);
}

/**
 * Returns the edit that adds members to PML's entry. Throws if the text cannot be edited without
 * another change.
 */
export async function withMembers(
  text: string,
  path: string,
  { at, members }: { readonly at: ClientForm["at"]; readonly members: ClientEntryValue },
): Promise<ClientEdit> {
  const place = [...at, NAME] as const;
  let after = text;
  if (path.endsWith(".toml")) {
    after = await withTableMembers(text, { path, at: place, entry: members });
  } else {
    for (const [key, entry] of Object.entries(members)) {
      after = await withValue(after, { path, at: [...place, key], entry });
    }
  }
  return { text: after, added: addedLines(text, after) };
}

/**
 * Returns the edit that adds a text to a list of a JSON file, which is made if there is none. Throws
 * if another value is there.
 */
export async function withListed(
  text: string,
  path: string,
  { at, listed }: Pick<FilePosition, "at"> & { readonly listed: string },
): Promise<ClientEdit> {
  const whole = await read(text.replace(/^\uFEFF/, ""), path);
  const present = at.reduce<unknown>((value, name) => objectOf(value)[name], whole) ?? [];
  if (!Array.isArray(present)) throw fileNotChanged(path, `"${at.join(".")}" is not a list`);
  const after = await withValue(text, { path, at, entry: [...present, listed] });
  return { text: after, added: addedLines(text, after) };
}

/** Returns a TOML text with members at the end of a table that exists. */
async function withTableMembers(
  text: string,
  { path, at, entry }: FilePosition,
): Promise<string> {
  const { stringify } = await import("smol-toml");
  const now = await parseToml(text, path);
  const present = at.reduce<unknown>((value, name) => objectOf(value)[name], now);
  const members = { ...objectOf(present), ...objectOf(entry) };
  const result = withEntry(now, { at, entry: members });
  const lines = text.split("\n");
  const header = `[${at.join(".")}]`;
  const begin = lines.findIndex((line) => line.replace(/#.*/, "").trim() === header);
  const next = lines.findIndex((line, index) => index > begin && /^\s*\[/.test(line));
  const table = lines.slice(begin + 1, next < 0 ? undefined : next);
  // A comment before the next table belongs to that.
  const used = table.findLastIndex((line) => !/^\s*(?:#.*)?\r?$/.test(line)) + 1;
  const end = text.includes("\r\n") ? "\r" : "";
  const added = stringify(entry).trimEnd().split("\n").map((line) => line + end);
  lines.splice(begin + 1 + used, 0, ...added);
  const after = lines.join("\n");
  const read = await parseToml(after, path).catch(() => undefined);
  if (begin >= 0 && isDeepStrictEqual(read, plain(result))) return after;
  throw uneditable(path);
}

/** Returns the edit of a YAML file, whose servers are a list. */
async function editYaml(
  text: string,
  path: string,
  { at: [section], entry }: Pick<ClientForm, "at" | "entry">,
): Promise<ClientEdit | undefined> {
  const list = objectOf(await parseClientYaml(text, path))[section] ?? [];
  if (!Array.isArray(list)) throw fileNotChanged(path, `"${section}" is not a list`);
  const present = list.find((server) => objectOf(server).name === NAME);
  if (isPml(present, entry)) return undefined;
  if (present !== undefined) return { text, added: [], other: JSON.stringify(present) };
  const after = await withListItem(text, { path, section, item: entry });
  return { text: after, added: addedLines(text, after) };
}

/**
 * Returns the text with an input of VS Code, which asks the user for the token. The text does not
 * change if it has an input with this id.
 */
async function withInput(
  text: string,
  { path, whole, input }: {
    readonly path: string;
    readonly whole: unknown;
    readonly input: ClientEntryValue;
  },
): Promise<string> {
  const { inputs = [] } = objectOf(whole);
  if (!Array.isArray(inputs)) throw fileNotChanged(path, '"inputs" is not a list');
  if (inputs.some((each) => objectOf(each).id === input.id)) return text;
  return await withValue(text, { path, at: ["inputs"], entry: [...inputs, input] });
}

/**
 * Returns a TOML text with a table for `entry`: in place of the table `before`, or else at the end.
 */
async function withTable(
  text: string,
  { path, at, entry, before }: FilePosition & { readonly before: ClientEntryValue | undefined },
): Promise<string> {
  const { stringify } = await import("smol-toml");
  const expected = withEntry(await parseToml(text, path), { at, entry });
  const end = text.includes("\r\n") ? "\r\n" : "\n";
  const tableOf = (value: unknown) =>
    `[${at.join(".")}]\n${stringify(value)}`.trimEnd().replaceAll("\n", end) + end;
  const gap = text === "" ? "" : text.endsWith("\n") ? end : end + end;
  const after = before === undefined
    ? text + gap + tableOf(entry)
    : text.replace(tableOf(before), () => tableOf(entry));
  // TOML allows no `[table]` below a table that is written inline, as `{ … }`.
  const now = await parseToml(after, path).catch(() => undefined);
  if (isDeepStrictEqual(now, plain(expected))) return after;
  throw uneditable(path);
}

/** Returns the lines that an edit adds to a text, without empty lines. */
function addedLines(before: string, after: string): readonly string[] {
  const [, own] = unlike(before, after);
  return own.split(/\r?\n/).filter((line) => line.trim() !== "");
}

/**
 * Returns the text with one value set at a path of keys, or removed if `entry` is undefined. Throws
 * if the text cannot be edited.
 */
export async function withValue(
  text: string,
  { path, at, entry, adds = false }: FilePosition,
): Promise<string> {
  const jsonc = await import("jsonc-parser");
  const bom = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const before = text.slice(bom.length);
  const now = await read(before, path);
  const whole = adds ? { ...objectOf(now[at[0]]), ...objectOf(entry) } : entry;
  const expected = withEntry(now, { at, entry: whole });
  const after = withJsonValue(before, { at, entry, adds, jsonc });
  if (isDeepStrictEqual(await read(after, path), plain(expected))) return bom + after;
  throw uneditable(path);
}

/**
 * Returns whether an entry starts PML or connects to it. Other fields of the entry, such as `env`,
 * may differ, and the command may be an absolute path.
 */
function isPml(present: unknown, entry: ClientEntryValue): boolean {
  if (!isObject(present)) return false;
  const { type, command, args } = present;
  // npx runs PML without an installation.
  const plain = withoutCmd({ command: textOf(command), args: textsOf(args) });
  if (isDeepStrictEqual(plain, { command: "npx", args: ["-y", "@casys/pml", "stdio"] })) {
    return true;
  }
  return [undefined, entry.type].includes(type) &&
    LEADING.every((key) => isDeepStrictEqual(withoutPath(present[key]), withoutPath(entry[key])));
}

/** The path of `pml` on any system. */
const PML_PATH = /^(?:\/|[A-Za-z]:[\\/])(?:.*[\\/])?pml(?:\.cmd)?$/;

/** Returns a command, or the arguments of `cmd /c`, with the name of `pml` in place of its path. */
function withoutPath(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPath);
  return typeof value === "string" && PML_PATH.test(value) ? "pml" : value;
}

/**
 * Returns a JSON text with one value set, added or removed at a path of keys. Keeps the comments and
 * the format of the rest. Adds missing objects of the path.
 */
function withJsonValue(
  text: string,
  { at, entry, adds, jsonc }: {
    readonly at: readonly string[];
    readonly entry: unknown;
    readonly adds: boolean;
    readonly jsonc: Jsonc;
  },
): string {
  const present = nodeIn(text, at, jsonc);
  if (entry === undefined) {
    return present ? jsonc.applyEdits(text, jsonc.modify(text, [...at], entry, {})) : text;
  }
  const indent = /^( +|\t)"/m.exec(text)?.[1] ?? "  ";
  if (present !== undefined && adds) {
    return withLast(text, present, { added: membersText(entry, indent), indent });
  }
  const list = present?.type === "array" && Array.isArray(entry) ? entry : undefined;
  const withList = list && withListElements(text, { at, list, indent, jsonc });
  if (withList !== undefined) return withList;
  if (present !== undefined) {
    const { offset, length } = present;
    const isLong = text.slice(offset, offset + length).includes("\n");
    const lineStart = isLong ? lineStartBefore(text, offset) : undefined;
    const value = inLines(JSON.stringify(entry, null, indent), lineStart);
    return text.slice(0, offset) + value + text.slice(offset + length);
  }
  let depth = at.length;
  let holder: Node | undefined;
  while (depth > 0 && !holder) holder = nodeIn(text, at.slice(0, --depth), jsonc);
  const [name = "", ...below] = at.slice(depth);
  const value = below.reduceRight((inner, key) => ({ [key]: inner }), entry);
  const added = membersText({ [name]: value }, indent);
  return holder ? withLast(text, holder, { added, indent }) : text;
}

/** Returns the text of an object's members, without its braces. */
function membersText(object: unknown, indent: string): string {
  return Object.entries(Object(object))
    .map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value, null, indent)}`)
    .join(",\n");
}

function nodeIn(
  text: string,
  at: readonly string[],
  { parseTree, findNodeAtLocation }: Jsonc,
): Node | undefined {
  const root = parseTree(text);
  return root && findNodeAtLocation(root, [...at]);
}

/** Returns the line break and the indentation of the line that contains an offset, if any. */
function lineStartBefore(text: string, offset: number): string | undefined {
  return /\r?\n[ \t]*(?=[^\n]*$)/.exec(text.slice(0, offset))?.[0];
}

/** Returns JSON with `lineStart` before each further line; in one line if that is undefined. */
function inLines(json: string, lineStart: string | undefined): string {
  return json.replaceAll(
    /\n\s*/g,
    (space) => lineStart === undefined ? " " : lineStart + space.slice(1),
  );
}

/**
 * Returns the text with a list changed to `list`: removes elements, and adds new ones at the end.
 * Elements that are in both lists keep their comments. Returns undefined if these two steps cannot
 * make `list`.
 */
function withListElements(
  text: string,
  { at, list, indent, jsonc }: {
    readonly at: readonly string[];
    readonly list: readonly unknown[];
    readonly indent: string;
    readonly jsonc: Jsonc;
  },
): string | undefined {
  const { modify, applyEdits, getNodeValue } = jsonc;
  const jsonOf = (value: unknown) => JSON.stringify(value, null, indent);
  const elements = nodeIn(text, at, jsonc)?.children ?? [];
  const before = elements.map((element) => jsonOf(getNodeValue(element)));
  const texts = list.map(jsonOf);
  if (!isAdded(before, texts)) return undefined;
  let after = text;
  for (const [index, element] of [...before.entries()].reverse()) {
    if (texts.includes(element)) continue;
    after = applyEdits(after, modify(after, [...at, index], undefined, {}));
  }
  for (const added of texts.filter((each) => !before.includes(each))) {
    const holder = nodeIn(after, at, jsonc);
    if (holder !== undefined) after = withLast(after, holder, { added, indent });
  }
  return after;
}

/**
 * Returns the text with an element added at the end of a list, or members at the end of an object:
 * after the last element and the comment that follows it.
 */
function withLast(
  text: string,
  { type, children = [], offset, length }: Node,
  { added, indent }: { readonly added: string; readonly indent: string },
): string {
  const last = children.at(-1);
  const end = last === undefined ? offset + 1 : last.offset + last.length;
  const rest = text.slice(end, offset + length - 1);
  const commentEnd = end + rest.trimEnd().length;
  const isEmpty = last === undefined && type === "object";
  const outer = lineStartBefore(text, last?.offset ?? offset) ??
    (text.includes("\r\n") ? "\r\n" : "\n");
  if (!isEmpty && !rest.includes("\n")) {
    return text.slice(0, end) + (last ? ", " : "") + inLines(added, undefined) + text.slice(end);
  }
  const lineStart = isEmpty ? outer + indent : outer;
  const comma = isEmpty || rest.replaceAll(COMMENT, "").includes(",") ? "" : ",";
  return text.slice(0, end) + comma + text.slice(end, commentEnd) + lineStart +
    inLines(added, lineStart) +
    (isEmpty ? outer + text.slice(end + rest.length) : text.slice(commentEnd));
}

async function read(text: string, path: string): Promise<Record<string, unknown>> {
  const value = plain(await parseClientJson(text, path));
  if (isObject(value)) return value;
  throw fileNotChanged(path, "it is not a JSON object");
}
