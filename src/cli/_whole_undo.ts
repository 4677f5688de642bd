/**
 * Restores the rules and grants that an edit removed, when the edit is undone. The edited file has a
 * copy, which contains its rules. The user's other file has no copy, so its rules are written again.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { isObject, objectOf, visible } from "../core/json.ts";
import { RULE_LISTS } from "../policy/rule_lists.ts";
import { planChange } from "./_config_file.ts";
import {
  type EndedRules,
  type FileUndo,
  findTarget,
  findUndo,
  parseTarget,
  readEdits,
  type TargetFile,
  type UndoScope,
} from "./_undoable_edits.ts";
import type { YamlSetting } from "../config/yaml_text.ts";

/** Returns the undo of the last edit of a file, with the rules and grants that the edit removed. */
export async function findWholeUndo(
  app: App,
  target: TargetFile,
  scope: UndoScope = {},
): Promise<FileUndo> {
  const { ended = [] } = readEdits(app, target.path).at(-1) ?? {};
  const undo = await findUndo(app, target, scope);
  const lines = ended.flatMap((rules) => linesOf(app, rules));
  if (lines.length === 0) return undo;
  return {
    path: undo.path,
    summary: [undo.summary, "These rules and grants come back:", ...lines].join("\n"),
    run: async () => {
      const done = [await undo.run()];
      await app.policy.reload();
      for (const rules of ended) done.push(...await restore(app, rules));
      return done.join("\n");
    },
  };
}

function linesOf(app: App, { workspace, rules, grants }: EndedRules): readonly string[] {
  const path = pathOf(app, workspace);
  return [
    ...RULE_LISTS.flatMap((list) => (rules[list] ?? []).map((rule) => `${list} ${rule}`)),
    ...Object.keys(grants).map((server) => `grants of ${server}`),
  ].map((line) => `  ${visible(line, 400)}, in ${path}`);
}

/** Restores the rules and grants that a file does not have. Returns a line about the file. */
async function restore(
  app: App,
  { workspace, rules, grants }: EndedRules,
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
