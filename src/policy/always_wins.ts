/**
 * Checks whether the rule that "Always" would add has an effect.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import { isSameRule, matches, parsePattern } from "../core/pattern.ts";
import type { ToolId } from "../core/tool_id.ts";
import { type JudgeOptions, makeJudge, type Rule, type RuleSet } from "./rules.ts";

/** The rule that "Always" would add, and the call that it is for. */
export interface Addition {
  readonly rule: string;
  readonly id: ToolId;
  readonly args: JsonObject;
  /** The file to which the rule is added. */
  readonly source: string;
}

/** Returns whether this call could run after "Always" added its rule. */
export function alwaysWins(
  rules: RuleSet,
  { rule, id, args, source, ...options }: Addition & JudgeOptions,
): boolean {
  // Only the rules that match this tool are parts of the judge: in a long list, most do not.
  const isReader = options.readers?.isReader(id);
  const matching = (list: readonly Rule[]) =>
    list.filter(({ pattern }) => matches(pattern, id, isReader));
  const ask = matching(rules.ask).filter((each) =>
    each.source !== source || !isSameRule(each.pattern.text, rule)
  );
  const allow = [...matching(rules.allow), { pattern: parsePattern(rule), source }];
  return makeJudge({ deny: matching(rules.deny), ask, allow }, options)(id, args).kind === "allow";
}
