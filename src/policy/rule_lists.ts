/**
 * Edits lists of rules: which values of a file change when rules move to a list or are removed.
 *
 * @module
 */

import type { YamlSetting } from "../config/yaml_text.ts";
import { isSameRule } from "../core/pattern.ts";
import type { RuleLists } from "./_rule_text.ts";

/** The names of the lists. */
export const RULE_LISTS = ["allow", "ask", "deny"] as const;

/** The name of a list of rules. */
export type RuleList = typeof RULE_LISTS[number];

/** The lists that a file has. */
export type PresentLists = Partial<RuleLists>;

/**
 * Returns the lists with rules added to one list and removed from the others; if `list` is
 * undefined, from all. A list that does not change is the same array.
 */
export function movedRules(
  lists: PresentLists,
  rules: readonly string[],
  list: RuleList | undefined,
): PresentLists {
  const entries = RULE_LISTS.flatMap((name) => {
    const before = lists[name] ?? [];
    const isListed = (rule: string) => before.some((listed) => isSameRule(listed, rule));
    const after = name === list
      ? [...before, ...new Set(rules.filter((rule) => !isListed(rule)))]
      : before.filter((listed) => !rules.some((rule) => isSameRule(listed, rule)));
    const isChanged = after.length !== before.length;
    return isChanged ? [[name, after]] : lists[name] === undefined ? [] : [[name, before]];
  });
  return Object.fromEntries(entries);
}

/** Returns the settings of a file whose lists change. */
export function listSettings(before: PresentLists, after: PresentLists): readonly YamlSetting[] {
  return RULE_LISTS.filter((name) => after[name] !== before[name])
    .map((name) => ({ at: ["permissions", name] as const, entry: after[name] }));
}
