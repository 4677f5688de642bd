/**
 * Restores the rules and grants that an edit removed, when the edit is undone, and removes those that
 * were written for a replacement. The edited file has a copy, which contains its rules. The user's
 * other file has no copy, so its rules are written again.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { FILE_NAME } from "../config/workspace.ts";
import { isObject, listOf, objectOf, visible } from "../core/json.ts";
import { MultiToolRules } from "../policy/multi_tool_rules.ts";
import { RULE_LISTS } from "../policy/rule_lists.ts";
import { planChange } from "./_config_file.ts";
import { type RuleRemoval, ruleRemovals } from "./_rules.ts";
import {
  type FileUndo,
  findTarget,
  findUndo,
  isWorkspaceFile,
  parseTarget,
  readEdits,
  type ServerRules,
  type TargetFile,
  type UndoScope,
} from "./_undoable_edits.ts";
import type { YamlSetting } from "../config/yaml_text.ts";

/**
 * Returns the undo of the last edit of a file, or of that with the index of `scope`, with the rules and
 * grants that the edit removed.
 */
export async function findWholeUndo(
  app: App,
  target: TargetFile,
  scope: UndoScope = {},
): Promise<FileUndo> {
  const { replaced, pins, ended = [], keptRules = [] } =
    readEdits(app, target.path).at(scope.index ?? -1) ?? {};
  const before = await filterPresent(app, [...ended, ...keptRules]);
  const removals: RuleRemoval[] = [];
  // They were written for the replacement. The earlier server would run by them.
  // guard: undone-rules
  if (replaced !== undefined) removals.push(...await ruleRemovals(app, replaced.name, before));
  const isSameFile = ({ workspace }: RuleRemoval) => workspace === isWorkspaceFile(target.path);
  const more = removals.filter(isSameFile).flatMap(({ settings }) => settings);
  const undo = await findUndo(app, target, { ...scope, more });
  const isHere = (rules: ServerRules) => before.includes(rules);
  const lost = await Promise.all(
    keptRules.filter(isHere).map((rules) => lostRules(app, rules)),
  );
  const returning = [...ended.filter(isHere), ...lost];
  const removedLines = removals.flatMap((removal) => linesOf(app, removal.ended));
  const lines = returning.flatMap((rules) => linesOf(app, rules));
  const otherLines = ended.filter((rules) => !isHere(rules))
    .flatMap((rules) => linesOf(app, { path: FILE_NAME, ...rules }));
  const others = await Promise.all(
    removals.filter((removal) => !isSameFile(removal)).map((removal) => planChange(app, removal)),
  );
  const summary = [
    undo.summary,
    ...titled("These rules and grants of the replacement are removed:", removedLines),
    ...titled("These rules and grants come back:", lines),
    ...titled(
      "These do not come back, because they were in the file of another workspace:",
      otherLines,
    ),
  ];
  return {
    path: undo.path,
    summary: summary.join("\n"),
    run: async () => {
      // Before the definition is back, so that a changed tool never looks new.
      // guard: undone-pins
      if (replaced !== undefined && pins) await (await app.pins()).restore(replaced.name, pins);
      for (const rules of before) await restoreEffects(app, rules);
      for (const { write } of others) await write();
      const done = [...others.map(({ path }) => `${path}: changed`), await undo.run()];
      await app.policy.reload();
      for (const rules of returning) done.push(...await restore(app, rules));
      return done.join("\n");
    },
  };
}

/** Returns the rules of the user's file and the present workspace's, not of another workspace. */
async function filterPresent(
  app: App,
  all: readonly ServerRules[],
): Promise<readonly ServerRules[]> {
  const present: ServerRules[] = [];
  for (const rules of all) {
    // guard: undone-elsewhere
    if (rules.workspace && rules.path !== (await findTarget(app, true)).path) continue;
    present.push(rules);
  }
  return present;
}

/** Restores the effects that the user saw for the allow rules of one answer. */
async function restoreEffects(app: App, { path, rules, effects }: ServerRules): Promise<void> {
  if (path === undefined || effects === undefined) return;
  // guard: undone-effects
  await new MultiToolRules(app.config().home).restore(path, rules.allow ?? [], effects);
}

function titled(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines];
}

/**
 * Returns the ask and deny rules that the user kept for a server and that its file no longer has, and
 * the grants that differ now.
 */
async function lostRules(
  app: App,
  { workspace, rules, grants }: ServerRules,
): Promise<ServerRules> {
  const value = objectOf(await parseTarget(await findTarget(app, workspace)));
  const lists = objectOf(value.permissions);
  const missing = (list: "ask" | "deny") =>
    (rules[list] ?? []).filter((rule) => !listOf(lists[list]).includes(rule));
  const present = objectOf(value.grants);
  const differing = Object.entries(grants)
    .filter(([server, entry]) => JSON.stringify(present[server]) !== JSON.stringify(entry));
  return {
    workspace,
    rules: { ask: missing("ask"), deny: missing("deny") },
    grants: Object.fromEntries(differing),
  };
}

function linesOf(
  app: App,
  { workspace, path = pathOf(app, workspace), rules, grants }: ServerRules,
): readonly string[] {
  return [
    ...RULE_LISTS.flatMap((list) => (rules[list] ?? []).map((rule) => `${list} ${rule}`)),
    ...Object.entries(grants).map(([server, entry]) =>
      `grants of ${server} ${JSON.stringify(entry)}`
    ),
  ].map((line) => `  ${visible(line, 400)}, in ${path}`);
}

/** Restores the rules and grants that a file does not have. Returns a line about the file. */
async function restore(
  app: App,
  { workspace, rules, grants }: ServerRules,
): Promise<readonly string[]> {
  const value = objectOf(await parseTarget(await findTarget(app, workspace)));
  const lists = objectOf(value.permissions);
  const settings: YamlSetting[] = RULE_LISTS.flatMap((list) => {
    const existing = Array.isArray(lists[list]) ? lists[list] : [];
    const missing = (rules[list] ?? []).filter((rule) => !existing.includes(rule));
    return missing.length === 0
      ? []
      : [{ at: ["permissions", list], entry: [...existing, ...missing] }];
  });
  const presentGrants = objectOf(value.grants);
  for (const [server, entry] of Object.entries(grants)) {
    // If there are grants for this name, the user wrote them after the edit.
    if (presentGrants[server] === undefined && isObject(entry)) {
      settings.push({ at: ["grants", server], entry });
    }
  }
  if (settings.length === 0) return [];
  try {
    const { path, write } = await planChange(app, { workspace, settings });
    await write();
    await app.policy.reload();
    return [`${path}: the rules and grants are back`];
  } catch {
    return [
      `${
        pathOf(app, workspace)
      }: the rules and grants are not back, because the file is not trusted`,
    ];
  }
}

function pathOf(app: App, workspace: boolean): string {
  return workspace ? app.policy.rulesFile : app.loaded().userConfig.path;
}
