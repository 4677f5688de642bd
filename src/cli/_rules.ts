/**
 * `pml allow`, `pml ask` and `pml deny`: put a rule into a file or remove it, and keep its comments.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { DEFAULT_TEXTS } from "../config/rules.ts";
import { defined, isObject, objectOf, quoted } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import { isSameRule, parsePattern, type Pattern } from "../core/pattern.ts";
import { isServerName } from "../core/tool_id.ts";
import {
  listSettings,
  movedRules,
  type PresentLists,
  RULE_LISTS,
  type RuleList,
} from "../policy/rule_lists.ts";
import { reachText } from "../policy/rule_file.ts";
import { askForTools, type CommandContext, type Shown, type Typed } from "./_command_context.ts";
import { agreed, changeOf, type FileChange } from "./_config_file.ts";
import { usage } from "./_failure.ts";
import { findTarget, valueIn } from "./_import_file.ts";
import type { YamlSetting } from "../config/yaml_text.ts";
import { readersOf, readersText } from "./_readers.ts";
import { denyingRule, unmetRule, whyUncovered } from "./_unmet_rules.ts";

/**
 * Returns the command that adds a rule to one list and removes it from the two others. The name of a
 * server alone means all of its tools.
 */
export function ruleCommand(list: RuleList) {
  return async (at: CommandContext, typed: Typed): Promise<Shown> => {
    const rule = ruleOf(typed.words[0]);
    if (typed.remove) return await removeRule(at, { ...typed, rule, lists: [list] });
    const { json } = typed;
    const pattern = parsePattern(rule);
    const [workspace, reason] = fileOf(at.app, { list, pattern, chosen: typed.workspace });
    const change = await rulesChange(at.app, { workspace, rules: [{ list, rules: [rule] }] });
    const isOfTools = pattern.kind !== "any" && pattern.kind !== "server";
    if (isOfTools) await askForTools(at, { only: pattern.server });
    const unmet = unmetRule(at.app, { pattern, source: change.path }, list);
    const denying = list === "deny" ? undefined : denyingRule(at.app, pattern);
    const denied = denying &&
      `A deny rule wins over it: ${quoted(denying.pattern.text, 200)} in ${denying.source}`;
    const readers = pattern.kind === "reads" ? readersOf(at.app, pattern.server) : undefined;
    const covers = readers?.length && "server" in pattern
      ? `It ${readersText(pattern.server, readers)}`
      : undefined;
    const warnings = [reason, unmet?.said, denied].filter((line) => line !== undefined);
    const remarks = [...warnings, ...covers === undefined ? [] : [covers]].join("\n");
    const about = {
      list,
      rule,
      reach: workspace ? "workspace" : "user",
      ...defined({ covers: readers }),
      ...warnings.length > 0 && { warnings },
    };
    const reach = reachIn(at.app, workspace);
    const own = await ownRule(at.app, { change, rule });
    return await agreed(at, { change: own, said: remarks, about, json, reach });
  };
}

/**
 * Returns the change that makes a rule the user's own. If an answer for several tools wrote it, its
 * tool may have changed since, and the rule ended.
 */
async function ownRule(
  app: App,
  { change, rule }: { readonly change: FileChange; readonly rule: string },
): Promise<FileChange> {
  const { multiTool } = (await app.callPath()).always;
  const written = { rule, source: change.path };
  if (!multiTool.has(written)) return change;
  const line = `The rule ${quoted(rule, 200)} in ${change.path} was an answer for several tools. ` +
    "As your own rule, it applies whatever the hints of its tool are";
  return {
    ...change,
    diff: change.diff || line,
    shown: [change.shown, line].filter(Boolean).join("\n"),
    write: async () => {
      if (change.diff !== "") await change.write();
      await multiTool.remove(written);
    },
  };
}

/**
 * Removes a rule from these lists of the file that contains it. Throws if no file or both files
 * contain it.
 */
export async function removeRule(
  at: CommandContext,
  { rule: typed, lists = RULE_LISTS, workspace, json }: Pick<Typed, "workspace" | "json"> & {
    readonly rule: string;
    readonly lists?: readonly RuleList[];
  },
): Promise<Shown> {
  const pattern = parsePattern(typed);
  const rule = pattern.kind === "arguments"
    ? `${pattern.server}:${pattern.tool}(${pattern.canonical})`
    : typed;
  const places = workspace === undefined ? [false, true] : [workspace];
  const present = await Promise.all(
    places.map(async (place) => {
      const permissions = objectOf((await listsIn(at.app, place)).permissions) as PresentLists;
      return { place, permissions, rules: lists.flatMap((list) => permissions[list] ?? []) };
    }),
  );
  const [found, other] = present.filter(({ rules }) => rules.some((one) => isSameRule(one, rule)));
  if (found === undefined) {
    throw unlisted(rule, lists, present.flatMap(({ rules }) => rules));
  }
  if (other !== undefined) {
    throw usage(
      `Cannot remove the rule ${quoted(rule, 200)}: your config.yaml and .pml.json both have it`,
      "Choose the file with --workspace or --no-workspace",
    );
  }
  const { permissions, place } = found;
  const chosen = Object.fromEntries(lists.map((list) => [list, permissions[list]]));
  const settings = listSettings(chosen, movedRules(chosen, [rule], undefined));
  const change = await changeOf(at.app, { workspace: place, settings });
  const about = { removed: rule, reach: place ? "workspace" : "user" };
  const reach = reachIn(at.app, place);
  return await agreed(at, { change, about, json, reach, isRemoval: true });
}

/** Returns the change of a file that puts rules into lists, in one edit. */
export async function rulesChange(
  app: App,
  { workspace, rules }: {
    readonly workspace: boolean;
    readonly rules: readonly { readonly list: RuleList; readonly rules: readonly string[] }[];
  },
): Promise<FileChange> {
  const { permissions } = await listsIn(app, workspace);
  const isNew = workspace && !isObject(permissions);
  // A workspace file without rules gets the default rules with its first.
  const before: PresentLists = isNew ? DEFAULT_TEXTS : objectOf(permissions);
  const after = rules.reduce<PresentLists>(
    (lists, one) => movedRules(lists, one.rules, one.list),
    before,
  );
  const all = rules.length === 0 ? [] : listSettings(isNew ? {} : before, after);
  const settings = all.filter(({ entry }) => !isNew || Array.isArray(entry) && entry.length > 0);
  return await changeOf(app, { workspace, settings });
}

/** Returns the rule that a user typed. The name of a server alone means all of its tools. */
export function ruleOf(typed = ""): string {
  return isServerName(typed) ? `${typed}:*` : typed;
}

/** The settings that remove the rules and the grants of a server from a file. */
export interface RuleRemoval {
  readonly workspace: boolean;
  /** The parts that the file has: rules, grants, or both. */
  readonly parts: readonly string[];
  readonly settings: readonly YamlSetting[];
}

/** Returns the rules of the user and of a trusted workspace that name a server, after their lists. */
export async function rulesOf(app: App, server: string): Promise<readonly string[]> {
  const places = app.config().trusted ? [false, true] : [false];
  const all = await Promise.all(places.map((workspace) => listsIn(app, workspace)));
  return all.flatMap(({ permissions }) => {
    const lists = objectOf(permissions) as PresentLists;
    return RULE_LISTS.flatMap((list) =>
      (lists[list] ?? []).filter(names(server)).map((rule) => `${list} ${rule}`)
    );
  });
}

function names(server: string) {
  return (rule: string): boolean => {
    const pattern = parsePattern(rule);
    return pattern.kind !== "any" && pattern.server === server;
  };
}

/**
 * Returns the settings that remove the rules and grants of a server from the user's file and from a
 * trusted workspace file. Another server of that name would run by them.
 */
export async function ruleRemovals(app: App, server: string): Promise<readonly RuleRemoval[]> {
  const removals: RuleRemoval[] = [];
  for (const workspace of app.config().trusted ? [false, true] : [false]) {
    const { permissions, grants } = await listsIn(app, workspace);
    const lists = objectOf(permissions) as PresentLists;
    const rules = RULE_LISTS.flatMap((list) => lists[list] ?? []).filter(names(server));
    const settings: YamlSetting[] = rules.length === 0
      ? []
      : [...listSettings(lists, movedRules(lists, rules, undefined))];
    const granted = Object.keys(objectOf(grants));
    const own = granted.filter((one) => one === server);
    const at: YamlSetting["at"] = granted.length === 1 ? ["grants"] : ["grants", server];
    // guard: replaced-grants
    if (own.length > 0) settings.push({ at, entry: undefined });
    const parts = [...rules.length > 0 ? ["rules"] : [], ...own.length > 0 ? ["grants"] : []];
    if (parts.length === 0) continue;
    removals.push({ workspace, parts, settings });
  }
  return removals;
}

/**
 * Returns whether a rule is written into the workspace file, and a line that explains it. An allow
 * rule of the user's file would not cover a server that the workspace defines.
 */
function fileOf(
  app: App,
  { list, pattern, chosen }: {
    readonly list: RuleList;
    readonly pattern: Pattern;
    readonly chosen: boolean | undefined;
  },
): readonly [workspace: boolean, line?: string] {
  if (chosen === true || list !== "allow") return [chosen === true];
  const { path } = app.loaded().person;
  const reason = whyUncovered(app, { pattern, source: path });
  if (reason === undefined) return [false];
  const line = `An allow rule in ${path} does not cover this server: ${reason}`;
  return [chosen === undefined, line];
}

async function listsIn(app: App, workspace: boolean) {
  return objectOf(await valueIn(await findTarget(app, workspace)));
}

function reachIn(app: App, workspace: boolean): string {
  const path = workspace ? app.policy.rulesFile : app.loaded().person.path;
  return reachText({ path, isOfUser: !workspace }, app.loaded());
}

/** Returns a rule without its arguments. */
function toolOf(rule: string): string {
  return rule.replace(/\(.*$/s, "");
}

function unlisted(rule: string, lists: readonly RuleList[], known: readonly string[]) {
  const where = lists.length === 1 ? `${lists[0]} rule` : "rule";
  const [server = ""] = rule.split(":", 1);
  const same = [...new Set(known)].filter((one) => one.startsWith(`${server}:`));
  // Arguments make a rule unlike every short name, so only the tools are compared.
  const nearTool = nearName(toolOf(rule), known.map(toolOf));
  const near = known.find((one) => toolOf(one) === nearTool);
  const otherwise = near !== undefined && near !== rule
    ? `Did you mean ${quoted(near, 200)}?`
    : same.length === 0
    ? "See all with `pml rules`"
    : `Rules of ${server}: ${same.slice(0, 5).join(", ")}`;
  return usage(
    `Cannot remove ${quoted(rule, 200)}: no file of yours has this ${where}`,
    DEFAULT_TEXTS.allow.includes(rule)
      ? `It is a default rule; \`pml ask ${rule}\` makes its calls ask`
      : otherwise,
  );
}
