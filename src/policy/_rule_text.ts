/**
 * Adds rules to the text of a `.pml.json` without changing anything else in it.
 *
 * @module
 */

import type { JSONPath, ParseError } from "jsonc-parser";
import { PmlError } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import { isSameRule } from "../core/pattern.ts";

type Jsonc = typeof import("jsonc-parser");

const STRING_OR_COMMENT = /"(?:\\.|[^"\\])*"|\/\/[^\r\n]*|\/\*[^]*?\*\//g;

/** The three lists in a file. */
export interface RuleLists {
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
}

/** The rules to add, and the list that they are added to: `allow` by default. */
export interface AddedRules {
  readonly rules: readonly string[];
  readonly list?: "allow" | "deny" | undefined;
}

/** Returns the text of a new file with the added rules. */
export function newText(added: AddedRules, defaults: RuleLists): string {
  return `${JSON.stringify({ version: 1, permissions: withRules(added, defaults) }, null, 2)}\n`;
}

/**
 * Returns the text with rules in `allow`, and without the same rules in `ask`; or with rules in
 * `deny`. If the file has no `permissions`, the default rules are written too, so that nothing else
 * changes. Throws CONFIG_INVALID if that is not possible.
 */
export async function textWithRules(
  text: string,
  { defaults, ...added }: AddedRules & { readonly defaults: RuleLists },
): Promise<string> {
  const { rules, list = "allow" } = added;
  const jsonc = await import("jsonc-parser");
  const mark = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  let now = text.slice(mark.length);
  const value = read(now, jsonc);
  const lists = value.permissions ?? defaults;
  if (!isLists(lists)) throw unreadable("a list is none");
  const permissions = withRules(added, lists);
  if (value.permissions === undefined) {
    now = inserted(now, { path: ["permissions"], value: permissions, jsonc });
  } else {
    if (list === "allow") now = rules.reduce((text, rule) => withoutAsk(text, rule, jsonc), now);
    for (const rule of newRules(added, lists).toReversed()) {
      now = inserted(now, { path: ["permissions", list, 0], value: rule, jsonc });
    }
  }
  // Compares the values before and after the edit. For example, if a key occurs twice, the editor
  // may change one and the parser read the other.
  if (JSON.stringify(read(now, jsonc)) !== JSON.stringify({ ...value, permissions })) {
    throw unreadable("it cannot be done without another change");
  }
  return mark + now;
}

function withRules(added: AddedRules, lists: Partial<RuleLists>): Partial<RuleLists> {
  const { rules, list = "allow" } = added;
  const { ask } = lists;
  const isAdded = (one: string) => rules.some((rule) => isSameRule(one, rule));
  return {
    ...lists,
    ...list === "allow" && ask && { ask: ask.filter((one) => !isAdded(one)) },
    [list]: [...newRules(added, lists), ...lists[list] ?? []],
  };
}

/** Returns the rules that the list does not contain yet. */
function newRules(
  { rules, list = "allow" }: AddedRules,
  lists: Partial<RuleLists>,
): readonly string[] {
  const present = lists[list] ?? [];
  return [...new Set(rules)].filter((rule) => !present.some((one) => isSameRule(one, rule)));
}

function isLists(value: unknown): value is Partial<RuleLists> {
  return isObject(value) &&
    [value.allow, value.ask, value.deny].every((list = []) => Array.isArray(list));
}

function read(text: string, jsonc: Jsonc): Record<string, unknown> {
  const errors: ParseError[] = [];
  const value: unknown = jsonc.parse(text, errors, { allowTrailingComma: true });
  if (errors.length > 0 || !isObject(value)) throw unreadable("it is no JSON object");
  return value;
}

function inserted(
  text: string,
  { path, value, jsonc }: {
    readonly path: JSONPath;
    readonly value: unknown;
    readonly jsonc: Jsonc;
  },
): string {
  const indent = /^[ \t]+(?=\S)/m.exec(text)?.[0] ?? "  ";
  const formattingOptions = {
    insertSpaces: indent.startsWith(" "),
    tabSize: indent.length,
    eol: text.includes("\r\n") ? "\r\n" : "\n",
  };
  const edits = jsonc.modify(text, path, value, { isArrayInsertion: true, formattingOptions });
  return jsonc.applyEdits(text, edits);
}

/** Removes the rule from `ask`, with one comma each time, and keeps the comments. */
function withoutAsk(text: string, rule: string, jsonc: Jsonc): string {
  const tree = jsonc.parseTree(text);
  const list = tree && jsonc.findNodeAtLocation(tree, ["permissions", "ask"]);
  const item = list?.children?.find(({ value }) => isSameRule(value, rule));
  if (item === undefined) return text;
  // Blanks replace comments, so that offsets stay and a comma in a comment is ignored.
  const bare = text.replace(
    STRING_OR_COMMENT,
    (token) => token.startsWith("/") ? " ".repeat(token.length) : token,
  );
  const end = item.offset + item.length;
  const start = bare.slice(0, item.offset).trimEnd().length;
  const next = end + bare.slice(end).search(/\S/);
  const comma = bare[next] === "," ? next : start - 1;
  // The line end before the item may end a comment, so it must stay then.
  const from = text.slice(start, item.offset).trim() === "" ? start : item.offset;
  const cuts = [{ offset: from, length: end - from, content: "" }];
  if (bare[comma] === ",") cuts.push({ offset: comma, length: 1, content: "" });
  return withoutAsk(jsonc.applyEdits(text, cuts), rule, jsonc);
}

function unreadable(why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot edit the rules: ${why}`, {
    hint: "Fix the file by hand, then try again",
  });
}
