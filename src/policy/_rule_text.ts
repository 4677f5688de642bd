/**
 * Adds rules to the text of a `.pml.json` without changing anything else in it.
 *
 * @module
 */

import type { ParseError } from "jsonc-parser";
import { JsonText } from "../config/json_text.ts";
import { PmlError } from "../core/errors.ts";
import { isObject } from "../core/json.ts";
import { isSameRule } from "../core/pattern.ts";

type Jsonc = typeof import("jsonc-parser");

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
 * `deny`. If the file has no `permissions`, the default rules are written too, because they apply
 * only to a file without that key. Throws CONFIG_INVALID if the text cannot be edited.
 */
export async function textWithRules(
  text: string,
  added: AddedRules,
  defaults: RuleLists,
): Promise<string> {
  const { rules, list = "allow" } = added;
  const jsonc = await import("jsonc-parser");
  const byteOrderMark = text.startsWith("\uFEFF") ? "\uFEFF" : "";
  const edited = new JsonText(text.slice(byteOrderMark.length), jsonc);
  const value = parseObject(edited.text, jsonc);
  const lists = value.permissions ?? defaults;
  if (!isLists(lists)) throw editError("allow, ask and deny must be lists");
  const permissions = withRules(added, lists);
  if (value.permissions === undefined) {
    edited.set(["permissions"], permissions);
  } else {
    if (list === "allow") { for (const rule of rules) removeFromAsk(edited, rule); }
    for (const rule of newRules(added, lists).toReversed()) {
      edited.unshift(["permissions", list], rule);
    }
  }
  // Compares the values before and after the edit. For example, if a key occurs twice, the editor
  // may change one and the parser read the other.
  if (
    JSON.stringify(parseObject(edited.text, jsonc)) !== JSON.stringify({ ...value, permissions })
  ) {
    throw editError("the edit would also change another part of the file");
  }
  return byteOrderMark + edited.text;
}

function withRules(added: AddedRules, lists: Partial<RuleLists>): Partial<RuleLists> {
  const { rules, list = "allow" } = added;
  const { ask } = lists;
  const isAdded = (listed: string) => rules.some((rule) => isSameRule(listed, rule));
  return {
    ...lists,
    ...list === "allow" && ask && { ask: ask.filter((listed) => !isAdded(listed)) },
    [list]: [...newRules(added, lists), ...lists[list] ?? []],
  };
}

/** Returns the rules that the list does not contain yet. */
function newRules(
  { rules, list = "allow" }: AddedRules,
  lists: Partial<RuleLists>,
): readonly string[] {
  const current = lists[list] ?? [];
  return [...new Set(rules)].filter((rule) => !current.some((listed) => isSameRule(listed, rule)));
}

function isLists(value: unknown): value is Partial<RuleLists> {
  return isObject(value) &&
    [value.allow, value.ask, value.deny].every((list = []) => Array.isArray(list));
}

function parseObject(text: string, jsonc: Jsonc): Record<string, unknown> {
  const errors: ParseError[] = [];
  const value: unknown = jsonc.parse(text, errors, { allowTrailingComma: true });
  if (errors.length > 0 || !isObject(value)) throw editError("the file is not a JSON object");
  return value;
}

/** Removes each occurrence of the rule in `ask`. */
function removeFromAsk(text: JsonText, rule: string): void {
  const items = text.find(["permissions", "ask"])?.children ?? [];
  for (const [index, { value }] of [...items.entries()].reverse()) {
    if (isSameRule(value, rule)) text.remove(["permissions", "ask", index]);
  }
}

function editError(why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot edit the rules: ${why}`, {
    hint: "Fix the file by hand, then try again",
  });
}
