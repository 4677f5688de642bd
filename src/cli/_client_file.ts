/**
 * Puts PML into the text of a client's `.mcp.json` and leaves every other character alone.
 *
 * @module
 */

import type { Node, ParseError } from "jsonc-parser";
import { PmlError } from "../core/errors.ts";
import { isObject, quoted } from "../core/json.ts";

type Jsonc = typeof import("jsonc-parser");

/** The entry of PML. The key is named, never written out. */
export const ENTRY = {
  type: "stdio",
  command: "pml",
  args: ["stdio"],
  env: { PML_API_KEY: "${PML_API_KEY:-}" },
} as const;

const LIST = "mcpServers";
const NAME = "pml";

/** What a client's file needs: nothing, one entry more, or one in the place of another. */
export type ClientEdit =
  | { readonly kind: "same" }
  | { readonly kind: "add"; readonly text: string }
  | { readonly kind: "replace"; readonly text: string; readonly before: string };

/** Makes the text of a new file. */
export function newClientText(): string {
  return `${JSON.stringify({ [LIST]: { [NAME]: ENTRY } }, null, 2)}\n`;
}

/** Says what the text of a file needs, or why it cannot be edited; `path` is for the error. */
export async function editClientText(text: string, path: string): Promise<ClientEdit> {
  const jsonc = await import("jsonc-parser");
  const mark = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const before = text.slice(mark.length);
  const value = read(before, { path, jsonc });
  const servers = value[LIST] ?? {};
  if (!isObject(servers)) throw unusable(path, `"${LIST}" is no object`);
  const found = Object.hasOwn(servers, NAME) ? servers[NAME] : undefined;
  if (same(found, ENTRY)) return { kind: "same" };
  const after = edited(before, { jsonc, found: found !== undefined });
  // A second key of the same name, for one, would be edited here and read there.
  const wanted = { ...value, [LIST]: { ...servers, [NAME]: ENTRY } };
  if (JSON.stringify(read(after, { path, jsonc })) !== JSON.stringify(wanted)) {
    throw unusable(path, "it cannot be edited without another change");
  }
  if (found === undefined) return { kind: "add", text: mark + after };
  return { kind: "replace", text: mark + after, before: JSON.stringify(found) };
}

function edited(
  text: string,
  { jsonc, found }: { readonly jsonc: Jsonc; readonly found: boolean },
): string {
  const root = jsonc.parseTree(text, [], { allowTrailingComma: true });
  const node = (path: string[]) => root && jsonc.findNodeAtLocation(root, path);
  const servers = node([LIST]);
  const entry = found ? node([LIST, NAME]) : undefined;
  if (entry !== undefined) {
    const lines = written(ENTRY, { text, indent: indentAt(text, entry.offset) });
    return text.slice(0, entry.offset) + lines + text.slice(entry.offset + entry.length);
  }
  if (servers !== undefined) return inserted(text, servers, { name: NAME, value: ENTRY, jsonc });
  if (root === undefined) return text;
  return inserted(text, root, { name: LIST, value: { [NAME]: ENTRY }, jsonc });
}

/** Puts a property behind the last one of an object, and behind the comments there. */
function inserted(
  text: string,
  object: Node,
  { name, value, jsonc }: { readonly name: string; readonly value: unknown; readonly jsonc: Jsonc },
): string {
  const { eol, unit } = styleOf(text);
  const last = object.children?.at(-1);
  const start = last === undefined ? object.offset + 1 : last.offset + last.length;
  const close = object.offset + object.length - 1;
  const gap = text.slice(start, close);
  const kept = gap.trimEnd();
  const outer = indentAt(text, object.offset);
  const oneLine = !text.slice(object.offset, close).includes("\n");
  const indent = last === undefined || oneLine ? outer + unit : indentAt(text, last.offset);
  const piece = `${JSON.stringify(name)}: ${written(value, { text, indent })}`;
  const closed = endsInComma(gap, jsonc);
  return text.slice(0, start) + (last === undefined || closed ? "" : ",") + kept +
    eol + indent + piece + (closed ? "," : "") +
    (oneLine ? eol + outer : gap.slice(kept.length)) + text.slice(close);
}

function written(
  value: unknown,
  { text, indent }: { readonly text: string; readonly indent: string },
): string {
  const { eol, unit } = styleOf(text);
  return JSON.stringify(value, null, unit).split("\n").join(eol + indent);
}

/** A comma in a comment is none. */
function endsInComma(gap: string, jsonc: Jsonc): boolean {
  const scanner = jsonc.createScanner(gap, true);
  scanner.scan();
  return gap[scanner.getTokenOffset()] === ",";
}

function styleOf(text: string): { readonly eol: string; readonly unit: string } {
  return {
    eol: text.includes("\r\n") ? "\r\n" : "\n",
    unit: /^([ \t]+)\S/m.exec(text)?.[1] ?? "  ",
  };
}

function indentAt(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  return /^[ \t]*/.exec(line)?.[0] ?? "";
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
    throw unusable(path, `${jsonc.printParseErrorCode(first.error)} in line ${line}`);
  }
  if (!isObject(value)) throw unusable(path, "it holds no JSON object");
  return value;
}

/** Tells whether two JSON values are the same, whatever the order of their keys. */
function same(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((each, at) => same(each, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return one === other;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && same(one[name], other[name]));
}

function unusable(path: string, why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot add PML to ${quoted(path, 400)}: ${why}`, {
    hint: "Nothing was changed; mend the file, then run `pml init` again",
  });
}
