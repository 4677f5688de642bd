/**
 * `pml allow`, `pml ask` and `pml deny`: put a rule into a file, and keep its comments.
 *
 * @module
 */

import { DEFAULT_TEXTS } from "../config/rules.ts";
import { defined, isObject, objectOf } from "../core/json.ts";
import { isSameRule, parsePattern } from "../core/pattern.ts";
import { isServerName } from "../core/tool_id.ts";
import { askForTools, type CommandContext, type Typed } from "./_command_context.ts";
import { agreed, changeOf } from "./_config_file.ts";
import { findTarget, valueIn } from "./_import_file.ts";
import { readersOf, readersText } from "./_readers.ts";
import { unmetRule } from "./_unmet_rules.ts";

const LISTS = ["allow", "ask", "deny"] as const;

/** A list of rules. */
export type RuleList = typeof LISTS[number];

/**
 * Returns the command that adds a rule to one list and removes it from the two others. The name of a
 * server alone means all of its tools.
 */
export function ruleCommand(list: RuleList) {
  return async (at: CommandContext, { words: [said = ""], workspace = false, json }: Typed) => {
    const rule = isServerName(said) ? `${said}:*` : said;
    const pattern = parsePattern(rule);
    const lists = await listsIn(at, workspace);
    const settings = LISTS.flatMap((name) => {
      const before = lists[name] ?? [];
      const others = before.filter((one) => !isSameRule(one, rule));
      const has = others.length < before.length;
      if (name !== list) {
        return has || lists.isNew && before.length > 0 ? [{ at: pathOf(name), entry: others }] : [];
      }
      return [{ at: pathOf(name), entry: has ? before : [...before, rule] }];
    });
    const change = await changeOf(at.app, { workspace, settings });
    const isOfTools = pattern.kind !== "any" && pattern.kind !== "server";
    if (isOfTools) await askForTools(at, { only: pattern.server });
    const unmet = unmetRule(at.app, { pattern, source: change.path });
    const readers = pattern.kind === "reads" ? readersOf(at.app, pattern.server) : undefined;
    const covers = readers?.length && "server" in pattern
      ? `It ${readersText(pattern.server, readers)}`
      : undefined;
    const about = { list, rule, ...defined({ covers: readers }) };
    return await agreed(at, { change, said: unmet?.said ?? covers, about, json });
  };
}

function pathOf(list: RuleList): readonly ["permissions", RuleList] {
  return ["permissions", list];
}

/** Returns the lists of a file. A workspace file without any gets the default rules with its first. */
async function listsIn(
  { app }: CommandContext,
  workspace: boolean,
): Promise<Partial<Record<RuleList, readonly string[]>> & { readonly isNew: boolean }> {
  const value = await valueIn(await findTarget(app, workspace));
  const { permissions } = objectOf(value);
  if (isObject(permissions)) return { ...permissions, isNew: false };
  return workspace ? { ...DEFAULT_TEXTS, isNew: true } : { isNew: false };
}
