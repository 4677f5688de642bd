/**
 * Puts servers into the text of a JSON or TOML file and changes nothing else in it.
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
import { isAdded, plain, put, withListItem, type YamlSetting } from "./_yaml_text.ts";

type Jsonc = typeof import("jsonc-parser");

const COMMENT = /\/\/.*|\/\*[^]*?\*\//g;

const NAME = "pml";
/** The keys of an entry that name its command or address. */
const LEADING = ["command", "args", "url", "serverUrl", "httpUrl"];

/** The position of a value in a file. */
interface FilePosition extends YamlSetting {
  readonly path: string;
}

/** The edit of a client's file. */
export interface ClientEdit {
  readonly text: string;
  /** The lines that it adds. */
  readonly added: readonly string[];
  /** The entry of another server of this name, if there is one. */
  readonly other?: string | undefined;
}

/**
 * Returns the edit that a text needs, or nothing if it has the entry already. If another server has
 * the name, the text stays. Throws if the text cannot be edited; `path` is for the error.
 */
export async function editClientText(
  text: string,
  path: string,
  { at, entry, instead, input }: ClientForm,
): Promise<ClientEdit | undefined> {
  if (/\.ya?ml$/.test(path)) return await editYaml(text, path, { at, entry });
  const isToml = path.endsWith(".toml");
  const whole = await (isToml ? parseToml : read)(text.replace(/^\uFEFF/, ""), path);
  const servers = at.reduce<unknown>((so, name) => isObject(so) ? so[name] ?? {} : so, whole);
  if (!isObject(servers)) throw fileNotChanged(path, `"${at.join(".")}" is not an object`);
  const found = memberOf(servers, NAME);
  if (isPml(found, entry)) return undefined;
  const other = JSON.stringify(found);
  const before = found === undefined ? undefined : instead;
  if (other !== JSON.stringify(before)) return { text, added: [], other };
  const asking = input === undefined ? text : await withInput(text, { path, whole, input });
  const own = { path, at: [...at, NAME], entry } as const;
  const after = isToml ? await withTable(text, { ...own, before }) : await withValue(asking, own);
  // Of an entry that another one replaces, all of the new one is shown.
  const bare = isToml || before === undefined
    ? asking
    : await withValue(asking, { ...own, entry: undefined });
  return { text: after, added: [...addedLines(text, asking), ...addedLines(bare, after)] };
}

/** Returns the edit of a YAML file, whose servers are a list. */
async function editYaml(
  text: string,
  path: string,
  { at: [section], entry }: Pick<ClientForm, "at" | "entry">,
): Promise<ClientEdit | undefined> {
  const list = objectOf(await parseClientYaml(text, path))[section] ?? [];
  if (!Array.isArray(list)) throw fileNotChanged(path, `"${section}" is not a list`);
  const found = list.find((one) => objectOf(one).name === NAME);
  if (isPml(found, entry)) return undefined;
  if (found !== undefined) return { text, added: [], other: JSON.stringify(found) };
  const after = await withListItem(text, { path, section, item: entry });
  return { text: after, added: addedLines(text, after) };
}

/** Adds the question for the token to those that the client asks the person. */
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
  if (inputs.some((one) => objectOf(one).id === input.id)) return text;
  return await withValue(text, { path, at: ["inputs"], entry: [...inputs, input] });
}

/** Returns a TOML text with a table behind everything else, or in the place of another one. */
async function withTable(
  text: string,
  { path, at, entry, before }: FilePosition & { readonly before: ClientEntryValue | undefined },
): Promise<string> {
  const { stringify } = await import("smol-toml");
  const wanted = put(await parseToml(text, path), { at, entry });
  const end = text.includes("\r\n") ? "\r\n" : "\n";
  const tableOf = (said: unknown) =>
    `[${at.join(".")}]\n${stringify(said)}`.trimEnd().replaceAll("\n", end) + end;
  const gap = text === "" ? "" : text.endsWith("\n") ? end : end + end;
  const after = before === undefined
    ? text + gap + tableOf(entry)
    : text.replace(tableOf(before), () => tableOf(entry));
  // An inline table cannot be added to from outside.
  const now = await parseToml(after, path).catch(() => undefined);
  if (isDeepStrictEqual(now, plain(wanted))) return after;
  throw uneditable(path);
}

/** Returns the lines that an edit adds to a text, and nothing of the lines around them. */
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
  const mark = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const before = text.slice(mark.length);
  const now = await read(before, path);
  const whole = adds ? { ...objectOf(now[at[0]]), ...objectOf(entry) } : entry;
  const wanted = put(now, { at, entry: whole });
  const after = edited(before, { at, entry, adds, jsonc });
  if (isDeepStrictEqual(await read(after, path), plain(wanted))) return mark + after;
  throw uneditable(path);
}

/**
 * Returns whether an entry leads to PML. Other fields of the entry, such as `env`, may differ, and
 * the command may be named by its whole path.
 */
function isPml(found: unknown, entry: ClientEntryValue): boolean {
  if (!isObject(found)) return false;
  const { type, command, args } = found;
  // npm starts it without an install.
  const plain = withoutCmd({ command: textOf(command), args: textsOf(args) });
  if (isDeepStrictEqual(plain, { command: "npx", args: ["-y", "@casys/pml", "stdio"] })) {
    return true;
  }
  return [undefined, entry.type].includes(type) &&
    LEADING.every((key) => isDeepStrictEqual(pathless(found[key]), pathless(entry[key])));
}

/** The path of `pml` on any system. */
const PML_PATH = /^(?:\/|[A-Za-z]:[\\/])(?:.*[\\/])?pml(?:\.cmd)?$/;

/** Returns a command, or the arguments of `cmd /c`, with the name of `pml` in place of its path. */
function pathless(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pathless);
  return typeof value === "string" && PML_PATH.test(value) ? "pml" : value;
}

function edited(
  text: string,
  { at, entry, adds, jsonc }: {
    readonly at: readonly string[];
    readonly entry: unknown;
    readonly adds: boolean;
    readonly jsonc: Jsonc;
  },
): string {
  const there = nodeIn(text, at, jsonc);
  // There is no entry to remove.
  if (entry === undefined) {
    return there ? jsonc.applyEdits(text, jsonc.modify(text, [...at], entry, {})) : text;
  }
  const indent = /^( +|\t)"/m.exec(text)?.[1] ?? "  ";
  if (there !== undefined && adds) {
    return appended(text, there, { own: membersText(entry, indent), indent });
  }
  const list = there?.type === "array" && Array.isArray(entry) ? entry : undefined;
  const now = list && listed(text, { at, list, indent, jsonc });
  if (now !== undefined) return now;
  if (there !== undefined) {
    const { offset, length } = there;
    const isLong = text.slice(offset, offset + length).includes("\n");
    const line = isLong ? lineOf(text, offset) : undefined;
    const own = inLines(JSON.stringify(entry, null, indent), line);
    return text.slice(0, offset) + own + text.slice(offset + length);
  }
  let depth = at.length;
  let holder: Node | undefined;
  while (depth > 0 && !holder) holder = nodeIn(text, at.slice(0, --depth), jsonc);
  const [name = "", ...below] = at.slice(depth);
  const value = below.reduceRight((inner, key) => ({ [key]: inner }), entry);
  const own = membersText({ [name]: value }, indent);
  return holder ? appended(text, holder, { own, indent }) : text;
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

/** Returns the line break before an offset with the indentation behind it, if there is one. */
function lineOf(text: string, offset: number): string | undefined {
  return /\r?\n[ \t]*(?=[^\n]*$)/.exec(text.slice(0, offset))?.[0];
}

/** Returns JSON whose lines begin as another one; in one line if there is no other. */
function inLines(json: string, line: string | undefined): string {
  return json.replaceAll(/\n\s*/g, (space) => line === undefined ? " " : line + space.slice(1));
}

/**
 * Removes elements from a list, and adds others as its last lines. What stays keeps its comments.
 * Returns undefined if that does not make the list that is wanted.
 */
function listed(
  text: string,
  { at, list, indent, jsonc }: {
    readonly at: readonly string[];
    readonly list: readonly unknown[];
    readonly indent: string;
    readonly jsonc: Jsonc;
  },
): string | undefined {
  const { modify, applyEdits, getNodeValue } = jsonc;
  const shown = (value: unknown) => JSON.stringify(value, null, indent);
  const before = nodeIn(text, at, jsonc)?.children?.map((one) => shown(getNodeValue(one))) ?? [];
  const wanted = list.map(shown);
  if (!isAdded(before, wanted)) return undefined;
  let now = text;
  for (const [index, one] of [...before.entries()].reverse()) {
    if (!wanted.includes(one)) now = applyEdits(now, modify(now, [...at, index], undefined, {}));
  }
  for (const own of wanted.filter((each) => !before.includes(each))) {
    const holder = nodeIn(now, at, jsonc);
    if (holder !== undefined) now = appended(now, holder, { own, indent });
  }
  return now;
}

/** Adds an element behind the last one of a list or an object, and behind a comment after that. */
function appended(
  text: string,
  { type, children = [], offset, length }: Node,
  { own, indent }: { readonly own: string; readonly indent: string },
): string {
  const last = children.at(-1);
  const end = last === undefined ? offset + 1 : last.offset + last.length;
  const behind = text.slice(end, offset + length - 1);
  const to = end + behind.trimEnd().length;
  const isEmpty = last === undefined && type === "object";
  const outer = lineOf(text, last?.offset ?? offset) ??
    (text.includes("\r\n") ? "\r\n" : "\n");
  if (!isEmpty && !behind.includes("\n")) {
    return text.slice(0, end) + (last ? ", " : "") + inLines(own, undefined) + text.slice(end);
  }
  const line = isEmpty ? outer + indent : outer;
  const comma = isEmpty || behind.replaceAll(COMMENT, "").includes(",") ? "" : ",";
  return text.slice(0, end) + comma + text.slice(end, to) + line + inLines(own, line) +
    (isEmpty ? outer + text.slice(end + behind.length) : text.slice(to));
}

async function read(text: string, path: string): Promise<Record<string, unknown>> {
  const value = plain(await parseClientJson(text, path));
  if (isObject(value)) return value;
  throw fileNotChanged(path, "it is not a JSON object");
}
