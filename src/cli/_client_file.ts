/**
 * Adds the entry of PML, or another value, to the text of a JSON, TOML or YAML file. No other
 * value and no comment changes.
 *
 * @module
 */

import { isDeepStrictEqual } from "node:util";
import { parseClientJson, parseClientYaml, parseToml } from "../config/clients.ts";
import { JsonText } from "../config/json_text.ts";
import { withoutCmd } from "../config/windows_command.ts";
import { isObject, memberOf, objectOf, textOf, textsOf } from "../core/json.ts";
import type { ClientEntryValue, ClientForm } from "./_client_form.ts";
import { differingParts, fileNotChanged, uneditable } from "./_files.ts";
import { toJson, withEntry, withListItem, type YamlSetting } from "../config/yaml_text.ts";

/** The name of PML's entry in the file of a client. */
export const NAME = "pml";
/** The permission rule of Claude Code for every tool of PML's entry. */
export const CLAUDE_RULE = `mcp__${NAME}`;
/** The keys of an entry that name the command or address of the server. */
const START_KEYS = ["command", "args", "url", "serverUrl", "httpUrl"];

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
  /** The lines of the entry of PML that the edit replaces; empty if it replaces none. */
  readonly removed: readonly string[];
  /** The entry of another server with the name `pml`. If set, the text is unchanged. */
  readonly other?: unknown;
}

/**
 * Returns the edit that adds PML to the text of a client's file; undefined if the text contains PML
 * already. If another server has the name `pml`, the edit changes nothing. Throws an error that names
 * `path` if the text cannot be edited.
 */
export async function editClientText(
  text: string,
  path: string,
  { at, entry: wanted, replaceableEntries, input, keptKeys = [] }: ClientForm,
): Promise<ClientEdit | undefined> {
  if (/\.ya?ml$/.test(path)) return await editYaml(text, path, { at, entry: wanted });
  const isToml = path.endsWith(".toml");
  const whole = await parseFile(text, path);
  const existing = entryIn(whole, at, path);
  if (isPml(existing, wanted)) return undefined;
  const keptEntries = Object.entries(objectOf(existing)).filter(([key]) => keptKeys.includes(key));
  const permission = Object.fromEntries(keptEntries);
  const entry = { ...wanted, ...permission };
  const replaceable = replaceableEntries.map((form) => toJson({ ...form, ...permission }));
  const replacedEntry = isObject(existing) &&
      replaceable.some((form) => isDeepStrictEqual(toJson(existing), form))
    ? existing
    : undefined;
  if (existing !== undefined && replacedEntry === undefined) {
    return { text, added: [], removed: [], other: existing };
  }
  const withInputs = input === undefined ? text : await withInput(text, { path, whole, input });
  const target = { path, at: [...at, NAME], entry } as const;
  const after = isToml
    ? await withTable(text, { ...target, replacedEntry })
    : await withValue(withInputs, target);
  if (replacedEntry === undefined) {
    return { text: after, added: addedLines(text, after), removed: [] };
  }
  // If the edit replaces an entry, the user sees each line of the old and of the new entry.
  const withoutEntry = isToml
    ? text.replace(await tableText(text, { at: target.at, entry: replacedEntry }), "")
    : await withValue(withInputs, { ...target, entry: undefined });
  return {
    text: after,
    added: [...addedLines(text, withInputs), ...addedLines(withoutEntry, after)],
    removed: addedLines(withoutEntry, withInputs),
  };
}

/**
 * Returns PML's entry in the text of a client's file, whose servers are an object; undefined if the
 * file has no such entry.
 */
export async function readPmlEntry(
  text: string,
  path: string,
  at: ClientForm["at"],
): Promise<unknown> {
  return entryIn(await parseFile(text, path), at, path);
}

/** Parses a client's file. Throws if it does not contain an object. */
async function parseFile(text: string, path: string): Promise<unknown> {
  return await (path.endsWith(".toml") ? parseToml : parseJson)(text.replace(/^\uFEFF/, ""), path);
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
 * Returns the edit that adds members to PML's entry. Throws if such an edit would change another value
 * of the file.
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
  return { text: after, added: addedLines(text, after), removed: [] };
}

/**
 * Returns the edit that adds a text to a list of a JSON file. Creates the list if it is missing.
 * Throws if the value at this path is not a list.
 */
export async function withListText(
  text: string,
  path: string,
  { at, listed: item }: Pick<FilePosition, "at"> & { readonly listed: string },
): Promise<ClientEdit> {
  const whole = await parseJson(text.replace(/^\uFEFF/, ""), path);
  const existing = at.reduce<unknown>((value, name) => objectOf(value)[name], whole) ?? [];
  if (!Array.isArray(existing)) throw fileNotChanged(path, `"${at.join(".")}" is not a list`);
  const after = await withValue(text, { path, at, entry: [...existing, item] });
  return { text: after, added: addedLines(text, after), removed: [] };
}

/** Returns a TOML text with members at the end of a table that exists. */
async function withTableMembers(
  text: string,
  { path, at, entry }: FilePosition,
): Promise<string> {
  const { stringify } = await import("smol-toml");
  const whole = await parseToml(text, path);
  const existing = at.reduce<unknown>((value, name) => objectOf(value)[name], whole);
  const members = { ...objectOf(existing), ...objectOf(entry) };
  const expected = withEntry(whole, { at, entry: members });
  const lines = text.split("\n");
  const header = `[${at.join(".")}]`;
  const begin = lines.findIndex((line) => line.replace(/#.*/, "").trim() === header);
  const next = lines.findIndex((line, index) => index > begin && /^\s*\[/.test(line));
  const table = lines.slice(begin + 1, next < 0 ? undefined : next);
  // A comment directly before the next table belongs to the next table.
  const used = table.findLastIndex((line) => !/^\s*(?:#.*)?\r?$/.test(line)) + 1;
  const end = text.includes("\r\n") ? "\r" : "";
  const added = stringify(entry).trimEnd().split("\n").map((line) => line + end);
  lines.splice(begin + 1 + used, 0, ...added);
  const after = lines.join("\n");
  const parsed = await parseToml(after, path).catch(() => undefined);
  if (begin >= 0 && isDeepStrictEqual(parsed, toJson(expected))) return after;
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
  const existing = list.find((server) => objectOf(server).name === NAME);
  if (isPml(existing, entry)) return undefined;
  if (existing !== undefined) return { text, added: [], removed: [], other: existing };
  const after = await withListItem(text, { path, section, item: entry });
  return { text: after, added: addedLines(text, after), removed: [] };
}

/**
 * Returns the text with an input: VS Code then asks the user for the token. The text does not change
 * if it has an input with this id.
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
 * Returns a TOML text with a table for `entry`: in place of the table of `replacedEntry`, or else at
 * the end.
 */
async function withTable(
  text: string,
  { path, at, entry, replacedEntry }: FilePosition & {
    readonly replacedEntry: ClientEntryValue | undefined;
  },
): Promise<string> {
  const expected = withEntry(await parseToml(text, path), { at, entry });
  const end = text.includes("\r\n") ? "\r\n" : "\n";
  const table = await tableText(text, { at, entry });
  const gap = text === "" ? "" : text.endsWith("\n") ? end : end + end;
  const after = replacedEntry === undefined
    ? text + gap + table
    : text.replace(await tableText(text, { at, entry: replacedEntry }), () => table);
  // TOML allows no `[table]` below a table that is written inline, as `{ … }`.
  const parsed = await parseToml(after, path).catch(() => undefined);
  if (isDeepStrictEqual(parsed, toJson(expected))) return after;
  throw uneditable(path);
}

/** Returns an entry as a TOML table with the line ends of a text. */
async function tableText(text: string, { at, entry }: YamlSetting): Promise<string> {
  const { stringify } = await import("smol-toml");
  const end = text.includes("\r\n") ? "\r\n" : "\n";
  return `[${at.join(".")}]\n${stringify(entry)}`.trimEnd().replaceAll("\n", end) + end;
}

/**
 * Returns the lines that an edit adds to a text, without empty lines. They are whole lines, unless the
 * edit adds a part of a line. White space does not count, because an edit may give a line break to
 * an object that was on one line.
 */
function addedLines(before: string, after: string): readonly string[] {
  const offsets = [...after.matchAll(/\S/g)].map(({ index }) => index);
  const signs = after.replaceAll(/\s/g, "");
  const [gone, added, first] = differingParts(before.replaceAll(/\s/g, ""), signs);
  let [start, end] = [first, first + added.length];
  const beginOf = (sign: number) => {
    const offset = offsets[sign] ?? after.length;
    const line = after.lastIndexOf("\n", offset - 1) + 1;
    return after.slice(line, offset).trim() === "" ? line : undefined;
  };
  if (added.startsWith(",")) start++;
  else if (gone === "") {
    // The next entry can begin with the same characters as the added one.
    let moved = 0;
    while (
      moved < first && beginOf(start - moved) === undefined &&
      signs[start - moved - 1] === signs[end - moved - 1]
    ) moved++;
    if (beginOf(start - moved) !== undefined) [start, end] = [start - moved, end - moved];
  }
  if (end <= start) return [];
  const text = after.slice(beginOf(start) ?? offsets[start], (offsets[end - 1] ?? 0) + 1);
  return text.split(/\r?\n/).filter((line) => line.trim() !== "");
}

/**
 * Returns the text with one value set at a path of keys, or removed if `entry` is undefined. With
 * `adds`, the members of `entry` are added to an object there. Throws if the text cannot be edited.
 */
export async function withValue(
  text: string,
  { path, at, entry, adds = false }: FilePosition,
): Promise<string> {
  const jsonc = await import("jsonc-parser");
  const bom = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const before = text.slice(bom.length);
  const parsed = await parseJson(before, path);
  const whole = adds ? { ...objectOf(parsed[at[0]]), ...objectOf(entry) } : entry;
  const expected = withEntry(parsed, { at, entry: whole });
  const edited = new JsonText(before, jsonc);
  if (entry === undefined) edited.remove([...at]);
  else if (adds && edited.find([...at]) !== undefined) edited.addMembers(at, objectOf(entry));
  else edited.set(at, entry);
  const after = edited.text;
  if (isDeepStrictEqual(await parseJson(after, path), toJson(expected))) return bom + after;
  throw uneditable(path);
}

/**
 * Returns whether an entry starts PML or connects to it. Other fields of the entry, such as `env`,
 * may differ, and the command may be an absolute path.
 */
function isPml(existing: unknown, entry: ClientEntryValue): boolean {
  if (!isObject(existing)) return false;
  const { type, command, args } = existing;
  // This command runs PML without an installation.
  const plain = withoutCmd({ command: textOf(command), args: textsOf(args) });
  if (isDeepStrictEqual(plain, { command: "npx", args: ["-y", "@casys/pml", "stdio"] })) {
    return true;
  }
  return [undefined, entry.type].includes(type) &&
    START_KEYS.every((key) =>
      isDeepStrictEqual(withoutPath(existing[key]), withoutPath(entry[key]))
    );
}

/** The path of `pml` on any system. */
const PML_PATH = /^(?:\/|[A-Za-z]:[\\/])(?:.*[\\/])?pml(?:\.cmd)?$/;

/** Returns a command, or the arguments of `cmd /c`, with the name of `pml` in place of its path. */
function withoutPath(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPath);
  return typeof value === "string" && PML_PATH.test(value) ? "pml" : value;
}

async function parseJson(text: string, path: string): Promise<Record<string, unknown>> {
  const value = toJson(await parseClientJson(text, path));
  if (isObject(value)) return value;
  throw fileNotChanged(path, "it is not a JSON object");
}
