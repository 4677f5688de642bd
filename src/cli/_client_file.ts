/**
 * Puts servers into the text of a JSON or TOML file and changes nothing else in it.
 *
 * @module
 */

import { basename, isAbsolute } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Node, ParseError } from "jsonc-parser";
import { isObject, memberOf, objectOf } from "../core/json.ts";
import { refused } from "./_files.ts";
import { isAdded } from "./_yaml_text.ts";

type Jsonc = typeof import("jsonc-parser");

const COMMENT = /\/\/.*|\/\*[^]*?\*\//g;

/** The entry that starts PML. It holds no key. */
export const ENTRY = { type: "stdio", command: "pml", args: ["stdio"] } as const;

/** The entry for `pml serve`. It names the variable of the token and never holds the token. */
export const HTTP_ENTRY = {
  type: "http",
  url: "http://127.0.0.1:3003/mcp",
  headers: { Authorization: "Bearer ${PML_TOKEN:-}" },
} as const;

const NAME = "pml";

/** The new text of a client's file, and the entry that it replaces, if there was one. */
export interface ClientEdit {
  readonly text: string;
  readonly before: string | undefined;
}

/** What is written into a client's file. */
export interface ClientForm {
  /** The keys of the object that holds the servers. */
  readonly at?: readonly [section: string, ...names: string[]];
  /** The entry of PML. */
  readonly entry?: Readonly<Record<string, unknown>>;
}

/**
 * Returns the edit that a text needs, or nothing if it has the entry already. Throws if the text
 * cannot be edited; `path` is for the error.
 */
export async function editClientText(
  text: string,
  path: string,
  { at = ["mcpServers"], entry = ENTRY }: ClientForm = {},
): Promise<ClientEdit | undefined> {
  const jsonc = await import("jsonc-parser");
  const whole: unknown = read(text.replace(/^\uFEFF/, ""), { jsonc, path });
  const servers = at.reduce((so, name) => isObject(so) ? so[name] ?? {} : so, whole);
  if (!isObject(servers)) throw refused(path, `"${at.join(".")}" is not an object`);
  const found = memberOf(servers, NAME);
  if (isPml(found, entry)) return undefined;
  const after = await withValue(text, { path, at: [...at, NAME], entry });
  return { text: after, before: JSON.stringify(found) };
}

/**
 * Does the same for a TOML file: the entry becomes a table behind everything else. The text of the
 * edit is the text before if another entry is there.
 */
export async function editTomlText(
  text: string,
  path: string,
  { at: [section] = ["mcp_servers"], entry = ENTRY }: ClientForm = {},
): Promise<ClientEdit | undefined> {
  const { parse, stringify, TomlError } = await import("smol-toml");
  const parsed = (toml: string): Record<string, unknown> => {
    try {
      return parse(toml);
    } catch (error) {
      // The library's message repeats the line, which may contain a key.
      throw refused(path, error instanceof TomlError ? `line ${error.line} is not TOML` : error);
    }
  };
  const before = parsed(text);
  const servers = before[section] ?? {};
  if (!isObject(servers)) throw refused(path, `"${section}" is not a table`);
  const found = memberOf(servers, NAME);
  if (isPml(found, entry)) return undefined;
  if (found !== undefined) return { text, before: JSON.stringify(found) };
  const wanted = { ...before, [section]: { ...servers, [NAME]: entry } };
  const end = text.includes("\r\n") ? "\r\n" : "\n";
  const gap = text === "" ? "" : text.endsWith("\n") ? end : end + end;
  const own = `[${section}.${NAME}]\n${stringify(entry)}`.trimEnd() + "\n";
  const after = text + gap + own.replaceAll("\n", end);
  try {
    if (isDeepStrictEqual(parse(after), parse(stringify(wanted)))) {
      return { text: after, before: undefined };
    }
  } catch {
    // An inline table cannot be added to from outside.
  }
  throw refused(path, "it cannot be edited without another change");
}

/** Returns the lines that an edit adds to a text, and nothing of the lines around them. */
export function addedLines(before: string, after: string): readonly string[] {
  let start = 0;
  while (start < before.length && before[start] === after[start]) start++;
  let end = 0;
  while (end < before.length - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const own = after.slice(start, after.length - end);
  return own.split(/\r?\n/).filter((line) => line.trim() !== "");
}

/**
 * Returns the text with one value set at a path of keys, or removed if `entry` is undefined. Throws
 * if the text cannot be edited.
 */
export async function withValue(
  text: string,
  { path, at, entry }: {
    readonly path: string;
    readonly at: readonly [section: string, ...names: string[]];
    readonly entry: unknown;
  },
): Promise<string> {
  const jsonc = await import("jsonc-parser");
  const mark = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const before = text.slice(mark.length);
  const wanted = read(before, { jsonc, path });
  const [last = ""] = at.slice(-1);
  const isThere = at.slice(0, -1).reduce<unknown>((so, name) => objectOf(so)[name], wanted);
  if (entry === undefined && isThere === undefined) return text;
  const holder = at.slice(0, -1).reduce<Record<string, unknown>>((so, name) => {
    const inside = so[name] ?? {};
    if (!isObject(inside)) throw refused(path, `"${name}" is not an object`);
    return so[name] = inside;
  }, wanted);
  if (entry === undefined) delete holder[last];
  else holder[last] = entry;
  const after = edited(before, { at, entry, jsonc });
  if (isDeepStrictEqual(read(after, { jsonc, path }), wanted)) return mark + after;
  throw refused(path, "it cannot be edited without another change");
}

/**
 * Returns whether an entry leads to PML. Other fields of the entry, such as `env`, may differ, and
 * the command may be named by its whole path.
 */
function isPml(found: unknown, entry: Readonly<Record<string, unknown>>): boolean {
  if (!isObject(found)) return false;
  const { type = entry.type, args, url } = found;
  // npm starts it without an install.
  if (found.command === "npx" && isDeepStrictEqual(args, ["-y", "@casys/pml", "stdio"])) {
    return true;
  }
  const wanted = [entry.type, pathless(entry.command), entry.args, entry.url];
  return isDeepStrictEqual([type, pathless(found.command), args, url], wanted);
}

function pathless(command: unknown): unknown {
  if (Array.isArray(command)) return [pathless(command[0]), ...command.slice(1)];
  return typeof command === "string" && isAbsolute(command) ? basename(command) : command;
}

function edited(
  text: string,
  { at, entry, jsonc }: {
    readonly at: readonly string[];
    readonly entry: unknown;
    readonly jsonc: Jsonc;
  },
): string {
  const { modify, applyEdits, format, parse, parseTree, findNodeAtLocation, getNodeValue } = jsonc;
  const list: unknown = at.reduce<unknown>((so, name) => objectOf(so)[name], parse(text));
  if (Array.isArray(list) && isAdded(list, entry)) return listed(text, { at, entry, jsonc });
  const indent = /^( +|\t)"/m.exec(text)?.[1] ?? "  ";
  const root = parseTree(text);
  const holder = root && findNodeAtLocation(root, at.slice(0, -1));
  const [name = ""] = at.slice(-1);
  const last = holder?.children?.at(-1);
  const behind = holder && last &&
    text.slice(last.offset + last.length, holder.offset + holder.length);
  const isNew = entry !== undefined && objectOf(holder && getNodeValue(holder))[name] === undefined;
  // The library would put the new part between the last one and the comment on it.
  if (holder?.type === "object" && isNew && behind?.match(COMMENT)) {
    return appended(
      text,
      holder,
      `${JSON.stringify(name)}: ${JSON.stringify(entry, null, indent)}`,
    );
  }
  const edits = modify(text, [...at], entry, {});
  const after = applyEdits(text, edits);
  const options = { tabSize: indent.length, insertSpaces: indent !== "\t" };
  // Only the new part is formatted, and the brackets beside it; the rest stays as it was.
  const shaped = edits.flatMap(({ offset, content }) => {
    const closes = after[offset + content.length] === "}" ? 1 : 0;
    return format(after, { offset: offset - 1, length: content.length + 1 + closes }, options);
  });
  return applyEdits(after, shaped);
}

/** Removes texts from a list, and adds others as its last lines. What stays keeps its comments. */
function listed(
  text: string,
  { at, entry, jsonc: { modify, applyEdits, parseTree, findNodeAtLocation, getNodeValue } }: {
    readonly at: readonly string[];
    readonly entry: readonly string[];
    readonly jsonc: Jsonc;
  },
): string {
  const nodeIn = (now: string) => {
    const root = parseTree(now);
    return root && findNodeAtLocation(root, [...at]);
  };
  const found = nodeIn(text);
  const before: readonly unknown[] = found ? getNodeValue(found) : [];
  let now = text;
  for (const [index, one] of [...before.entries()].reverse()) {
    if (entry.includes(one as string)) continue;
    now = applyEdits(now, modify(now, [...at, index], undefined, {}));
  }
  for (const one of entry.filter((each) => !before.includes(each))) {
    const holder = nodeIn(now);
    if (holder !== undefined) now = appended(now, holder, JSON.stringify(one));
  }
  return now;
}

/** Adds an element behind the last one of a list or an object, and behind a comment after that. */
function appended(text: string, { children = [], offset, length }: Node, own: string): string {
  const closing = offset + length - 1;
  const last = children.at(-1);
  const end = last === undefined ? offset + 1 : last.offset + last.length;
  const behind = text.slice(end, closing);
  const isOpen = behind.replaceAll(COMMENT, "").includes(",");
  const comma = last === undefined || isOpen ? "" : ",";
  const space = last && /\r?\n[ \t]*$/.exec(text.slice(0, last.offset))?.[0];
  if (space === undefined || !behind.includes("\n")) {
    const between = last === undefined ? "" : ", ";
    return text.slice(0, end) + between + own + text.slice(isOpen ? closing : end);
  }
  const line = `${space}${own.replaceAll("\n", space)}`;
  return text.slice(0, end) + comma + behind.trimEnd() + line +
    behind.slice(behind.trimEnd().length) + text.slice(closing);
}

function read(
  text: string,
  { path, jsonc }: { readonly path: string; readonly jsonc: Jsonc },
): Record<string, unknown> {
  const errors: ParseError[] = [];
  const value: unknown = jsonc.parse(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined) {
    const line = text.slice(0, first.offset).split("\n").length;
    const said = jsonc.printParseErrorCode(first.error).replace(/\B[A-Z]/g, " $&").toLowerCase();
    throw refused(path, `line ${line} is not JSON (${said})`);
  }
  if (!isObject(value)) throw refused(path, "it is not a JSON object");
  return value;
}
