/**
 * `pml allow`, `pml ask` and `pml deny`: put a rule into a file or remove it, and keep the comments of
 * the file.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { DEFAULT_TEXTS } from "../config/rules.ts";
import { isObject, objectOf, quoted, withoutUndefined } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import { isSameRule, parsePattern, type Pattern } from "../core/pattern.ts";
import { isServerName } from "../core/tool_id.ts";
import { MultiToolRules, type ShownEffect } from "../policy/multi_tool_rules.ts";
import {
  listSettings,
  movedRules,
  type PresentLists,
  RULE_LISTS,
  type RuleList,
} from "../policy/rule_lists.ts";
import { reachText } from "../policy/rule_file.ts";
import {
  askForTools,
  type CommandContext,
  type CommandInput,
  type CommandOutput,
} from "./_command_context.ts";
import { confirmChange, type FileChange, planChange } from "./_config_file.ts";
import { usage } from "./_failure.ts";
import { findTarget, parseTarget, type ServerRules } from "./_undoable_edits.ts";
import type { YamlSetting } from "../config/yaml_text.ts";
import { readersOf, readersText } from "./_readers.ts";
import { denyingRule, unmetRule, whyUncovered } from "./_unmet_rules.ts";

/** The reach of an allow rule `*`, which the user sees before the question. */
const ANY_TOOL =
  "It covers all tools of your servers, also tools that you have not used yet: they run, and PML " +
  "does not show you their texts. `shell`, the first use of a server of a registry and " +
  "changed definitions still ask";

/**
 * Returns the command that adds a rule to one list and removes it from the two others. The name of a
 * server alone means all of its tools.
 */
export function ruleCommand(list: RuleList) {
  return async (context: CommandContext, input: CommandInput): Promise<CommandOutput> => {
    const rule = parseRule(input.words[0]);
    if (input.remove) return await removeRule(context, { ...input, rule, lists: [list] });
    const { json } = input;
    const pattern = parsePattern(rule);
    const [workspace, reason] = chooseFile(context.app, {
      ...{ list, pattern, workspaceOption: input.workspace },
    });
    const change = await rulesChange(context.app, { workspace, rules: [{ list, rules: [rule] }] });
    const isOfTools = pattern.kind !== "any" && pattern.kind !== "server";
    if (isOfTools) await askForTools(context, { only: pattern.server });
    const unmet = unmetRule(context.app, { pattern, source: change.path }, list);
    const denying = list === "deny" ? undefined : denyingRule(context.app, pattern);
    const denied = denying &&
      `A deny rule wins over it: ${quoted(denying.pattern.text, 200)} in ${denying.source}`;
    const readers = pattern.kind === "reads" ? readersOf(context.app, pattern.server) : undefined;
    const covers = readers?.length && "server" in pattern
      ? `It ${readersText(pattern.server, readers)}`
      : undefined;
    const unread = list === "allow" && pattern.kind === "any" ? ANY_TOOL : undefined;
    const warnings = [reason, unread, unmet?.sentence, denied].filter((line) => line !== undefined);
    const replaced = await replacedText(context.app, { workspace, rule, list });
    const remarks = [...warnings, covers, replaced].filter((line) => line !== undefined).join("\n");
    const about = {
      list,
      rule,
      reach: workspace ? "workspace" : "user",
      ...withoutUndefined({ covers: readers }),
      ...warnings.length > 0 && { warnings },
    };
    const reach = reachIn(context.app, workspace);
    const ownChange = await ownRule(context.app, { change, rule, list });
    return await confirmChange(context, {
      change: ownChange,
      details: remarks,
      about,
      json,
      reach,
    });
  };
}

/** Returns the text that a rule moves to this list from another one of the same file. */
async function replacedText(
  app: App,
  { workspace, rule, list }: {
    readonly workspace: boolean;
    readonly rule: string;
    readonly list: RuleList;
  },
): Promise<string | undefined> {
  const lists = objectOf((await listsIn(app, workspace)).permissions) as PresentLists;
  const [other] = RULE_LISTS.filter((one) =>
    one !== list && lists[one]?.some((each) => isSameRule(each, rule))
  );
  return other && `The rule moves from ${other} to ${list}`;
}

/**
 * Returns a change after which a rule counts as written by the user. A rule that an answer for several
 * tools wrote ends when its tool changes; a rule of the user does not end.
 */
async function ownRule(
  app: App,
  { change, rule, list }: {
    readonly change: FileChange;
    readonly rule: string;
    readonly list: RuleList;
  },
): Promise<FileChange> {
  const { multiTool } = (await app.callPath()).alwaysRules;
  const written = { rule, source: change.path };
  if (!multiTool.has(written)) return change;
  // Only an allow rule ends with the hints of its tool.
  const line = list !== "allow"
    ? ""
    : `The rule ${quoted(rule, 200)} in ${change.path} was an answer for several tools. ` +
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
  context: CommandContext,
  { rule: typed, lists = RULE_LISTS, workspace, json }: Pick<CommandInput, "workspace" | "json"> & {
    readonly rule: string;
    readonly lists?: readonly RuleList[];
  },
): Promise<CommandOutput> {
  const { rule, change, isWorkspace, reach } = await planRuleRemoval(context.app, {
    rule: typed,
    lists,
    workspace,
  });
  const about = { removed: rule, reach: isWorkspace ? "workspace" : "user" };
  return await confirmChange(context, { change, about, json, reach, isRemoval: true });
}

/** The removal of one rule from a file. The change is not written yet. */
export interface SingleRuleRemoval {
  readonly rule: string;
  readonly change: FileChange;
  /** Whether the workspace's file has the rule. */
  readonly isWorkspace: boolean;
  /** The file, and the calls that its rules apply to. */
  readonly reach: string;
}

/** Returns the change that removes a rule. Throws if no file or both files contain it. */
export async function planRuleRemoval(
  app: App,
  { rule: typed, lists = RULE_LISTS, workspace }: {
    readonly rule: string;
    readonly lists?: readonly RuleList[];
    readonly workspace?: boolean | undefined;
  },
): Promise<SingleRuleRemoval> {
  const pattern = parsePattern(typed);
  const rule = pattern.kind === "arguments"
    ? `${pattern.server}:${pattern.tool}(${pattern.canonical})`
    : typed;
  const places = workspace === undefined ? [false, true] : [workspace];
  const files = await Promise.all(
    places.map(async (isWorkspace) => {
      const permissions = objectOf((await listsIn(app, isWorkspace)).permissions) as PresentLists;
      return { isWorkspace, permissions, rules: lists.flatMap((list) => permissions[list] ?? []) };
    }),
  );
  const [match, secondMatch] = files
    .filter(({ rules }) => rules.some((one) => isSameRule(one, rule)));
  if (match === undefined) {
    throw unknownRuleError(rule, lists, files.flatMap(({ rules }) => rules));
  }
  if (secondMatch !== undefined) {
    throw usage(
      `Cannot remove the rule ${quoted(rule, 200)}: your config.yaml and .pml.json both have it`,
      "Choose the file with --workspace or --no-workspace",
    );
  }
  const { permissions, isWorkspace } = match;
  const chosen = Object.fromEntries(lists.map((list) => [list, permissions[list]]));
  const settings = listSettings(chosen, movedRules(chosen, [rule], undefined));
  const change = await planChange(app, { workspace: isWorkspace, settings });
  return { rule, change, isWorkspace, reach: reachIn(app, isWorkspace) };
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
  // A workspace file without rules gets the default rules together with its first rule.
  const before: PresentLists = isNew ? DEFAULT_TEXTS : objectOf(permissions);
  const after = rules.reduce<PresentLists>(
    (lists, one) => movedRules(lists, one.rules, one.list),
    before,
  );
  const edits = rules.length === 0 ? [] : listSettings(isNew ? {} : before, after);
  const settings = edits.filter(({ entry }) => !isNew || Array.isArray(entry) && entry.length > 0);
  return await planChange(app, { workspace, settings });
}

/** Returns the rule that a user typed. The name of a server alone means all of its tools. */
export function parseRule(typed = ""): string {
  return isServerName(typed) ? `${typed}:*` : typed;
}

/** The edits that remove the rules and the grants of a server from a file. */
export interface RuleRemoval {
  readonly workspace: boolean;
  /** The parts that the file has: rules, grants, or both. */
  readonly parts: readonly string[];
  readonly settings: readonly YamlSetting[];
  /** The rules and grants themselves, so that an undo can bring them back. */
  readonly ended: ServerRules;
}

/** Returns the rules of the user and of a trusted workspace about a server, each as `LIST RULE`. */
export async function readRules(app: App, server: string): Promise<readonly string[]> {
  const places = app.config().trusted ? [false, true] : [false];
  const files = await Promise.all(places.map((workspace) => listsIn(app, workspace)));
  return files.flatMap(({ permissions }) => {
    const lists = objectOf(permissions) as PresentLists;
    return RULE_LISTS.flatMap((list) =>
      (lists[list] ?? []).filter(isRuleOf(server)).map((rule) => `${list} ${rule}`)
    );
  });
}

/** Returns a function that checks whether a rule names a server. */
function isRuleOf(server: string) {
  return (rule: string): boolean => {
    const pattern = parsePattern(rule);
    return pattern.kind !== "any" && pattern.server === server;
  };
}

/**
 * Returns the settings that remove the rules and grants of a server from the user's file and from a
 * trusted workspace file. Another server of that name would run by them. With `before`, only allow
 * rules and grants that are not among these: deny and ask rules make nothing possible.
 */
export async function ruleRemovals(
  app: App,
  server: string,
  before?: readonly ServerRules[],
): Promise<readonly RuleRemoval[]> {
  const removals: RuleRemoval[] = [];
  for (const workspace of app.config().trusted ? [false, true] : [false]) {
    const target = await findTarget(app, workspace);
    const { permissions, grants } = objectOf(await parseTarget(target));
    const { path } = target;
    const { allow, ...others } = objectOf(permissions) as PresentLists;
    const lists: PresentLists = { ...withoutUndefined({ allow }), ...before ? {} : others };
    const earlier = before?.filter((one) => one.workspace === workspace) ?? [];
    const isEarlier = (rule: string) =>
      earlier.some(({ rules }) => rules.allow?.some((one) => isSameRule(one, rule)));
    const isRemoved = (rule: string) => isRuleOf(server)(rule) && !isEarlier(rule);
    const rules = RULE_LISTS.flatMap((list) => lists[list] ?? []).filter(isRemoved);
    const settings: YamlSetting[] = rules.length === 0
      ? []
      : [...listSettings(lists, movedRules(lists, rules, undefined))];
    const granted = Object.keys(objectOf(grants));
    const isGrantedBefore = (text: string) =>
      earlier.some((one) => JSON.stringify(one.grants[server]) === text);
    const ownGrants = granted.filter((one) => one === server)
      .filter((one) => !isGrantedBefore(JSON.stringify(objectOf(grants)[one])));
    const at: YamlSetting["at"] = granted.length === 1 ? ["grants"] : ["grants", server];
    // guard: replaced-grants
    if (ownGrants.length > 0) settings.push({ at, entry: undefined });
    const parts = [...rules.length > 0 ? ["rules"] : [], ...ownGrants.length > 0 ? ["grants"] : []];
    if (parts.length === 0) continue;
    const ended = Object.fromEntries(
      RULE_LISTS.map((list) => [list, (lists[list] ?? []).filter(isRemoved)]),
    );
    const entries = ownGrants.map((name) => [name, objectOf(grants)[name]]);
    removals.push({
      ...{ workspace, parts, settings },
      ended: {
        ...{ workspace, path, rules: ended, grants: Object.fromEntries(entries) },
        effects: effectsOf(app, { path, rules: ended.allow ?? [] }),
      },
    });
  }
  return removals;
}

/** Returns the effects that the user saw for the rules of one answer. */
function effectsOf(
  app: App,
  { path, rules }: { readonly path: string; readonly rules: readonly string[] },
): Readonly<Record<string, ShownEffect>> {
  const multiTool = new MultiToolRules(app.config().home);
  return Object.fromEntries(rules.flatMap((rule) => {
    const effect = multiTool.recordOf({ rule, source: path });
    return effect === undefined ? [] : [[rule, effect]];
  }));
}

/**
 * Returns whether a rule is written into the workspace file, and a line that explains it. An allow
 * rule of the user's file would not cover a server that the workspace defines.
 */
function chooseFile(
  app: App,
  { list, pattern, workspaceOption }: {
    readonly list: RuleList;
    readonly pattern: Pattern;
    readonly workspaceOption: boolean | undefined;
  },
): readonly [workspace: boolean, line?: string] {
  if (workspaceOption === true || list !== "allow") return [workspaceOption === true];
  const { path } = app.loaded().userConfig;
  const reason = whyUncovered(app, { pattern, source: path });
  if (reason === undefined) return [false];
  const line = `An allow rule in ${path} does not cover this server: ${reason}`;
  return [workspaceOption === undefined, line];
}

async function listsIn(app: App, workspace: boolean) {
  return objectOf(await parseTarget(await findTarget(app, workspace)));
}

function reachIn(app: App, workspace: boolean): string {
  const path = workspace ? app.policy.rulesFile : app.loaded().userConfig.path;
  return reachText({ path, isOfUser: !workspace }, app.loaded());
}

/** Returns a rule without its arguments. */
function toolOf(rule: string): string {
  return rule.replace(/\(.*$/s, "");
}

function unknownRuleError(rule: string, lists: readonly RuleList[], known: readonly string[]) {
  const where = lists.length === 1 ? `${lists[0]} rule` : "rule";
  const [server = ""] = rule.split(":", 1);
  const serverRules = [...new Set(known)].filter((one) => one.startsWith(`${server}:`));
  // With arguments, a rule resembles no other one, so only the names of the tools are compared.
  const nearTool = nearName(toolOf(rule), known.map(toolOf));
  const near = known.find((one) => toolOf(one) === nearTool);
  const otherwise = near !== undefined && near !== rule
    ? `Did you mean ${quoted(near, 200)}?`
    : serverRules.length === 0
    ? "See all with `pml rules`"
    : `Rules of ${server}: ${serverRules.slice(0, 5).join(", ")}`;
  return usage(
    `Cannot remove ${quoted(rule, 200)}: no file of yours has this ${where}`,
    DEFAULT_TEXTS.allow.includes(rule)
      ? `It is a default rule; \`pml ask ${rule}\` makes its calls ask`
      : otherwise,
  );
}
