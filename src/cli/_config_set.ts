/**
 * `pml config set`: writes one setting, if PML can read the file with this setting without a problem.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { readWorkspaceFile } from "../config/file.ts";
import { readUserConfig } from "../config/user_config.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, memberOf, objectOf, quoted } from "../core/json.ts";
import { confirmChange, type FileChange, planChange } from "./_config_file.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { findTarget, parseTarget } from "./_undoable_edits.ts";
import { OTHER_COMMANDS } from "./_setting_keys.ts";

/** The path of keys of a setting, which begins with its section. */
type SettingPlace = readonly [section: string, ...keys: string[]];

/** Writes one setting into the user's `config.yaml`, or into the workspace file. */
export async function setValue(
  context: CommandContext,
  { words: [, key = "", ...valueWords], workspace = false, json }: CommandInput,
): Promise<CommandOutput> {
  const [first = "", ...rest] = key.split(".");
  if (first === "" || rest.includes("") || valueWords.length === 0) {
    throw usage(
      `Cannot set ${quoted(key)}: the command needs a key and a value`,
      "Write `pml config set limits.children 4`; null removes a setting",
    );
  }
  const other = memberOf(OTHER_COMMANDS, first);
  if (other !== undefined) throw usage(`Cannot set ${quoted(key)} here`, `Use ${other}`);
  const value = parseValue(valueWords.join(" "));
  const whole = [first, ...rest] as const;
  const place = value === null ? await placeToRemove(context.app, whole, workspace) : whole;
  const settings = [{ at: place, entry: value ?? undefined }];
  const change = await planChange(context.app, { workspace, settings });
  await assertReadable(context.app, { change, workspace, key });
  return await confirmChange(context, { change, about: { key, value }, json });
}

/**
 * Returns the path of keys to remove for a setting. Includes the sections around the setting that
 * contain nothing else, so that no empty section stays.
 */
async function placeToRemove(
  app: App,
  [first, ...rest]: SettingPlace,
  workspace: boolean,
): Promise<SettingPlace> {
  let section: unknown = objectOf(await parseTarget(await findTarget(app, workspace)));
  const sections = [first, ...rest].map((key) => section = objectOf(section)[key]);
  const keys = [...rest];
  const isOnlyKey = () => {
    const [key, ...others] = Object.keys(objectOf(sections[keys.length - 1]));
    return key === keys.at(-1) && others.length === 0;
  };
  while (keys.length > 0 && isOnlyKey()) keys.pop();
  return [first, ...keys];
}

/** Parses a value as JSON. Returns the text itself if it is not JSON. */
function parseValue(text: string): JsonObject[string] {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Throws if the new text of the file is invalid. Writes it only into a temporary folder. */
async function assertReadable(
  app: App,
  { change: { text }, workspace, key }: {
    readonly change: FileChange;
    readonly workspace: boolean;
    readonly key: string;
  },
): Promise<void> {
  const { environment: { userHome } } = app.loaded();
  const folder = await Deno.makeTempDir({ dir: app.config().home, prefix: "config-" });
  try {
    const path = join(folder, workspace ? ".pml.json" : "config.yaml");
    await Deno.writeTextFile(path, text, { mode: 0o600 });
    const report = { problems: [], warnings: [] as string[] };
    if (workspace) await readWorkspaceFile(path, report);
    else await readUserConfig(path, { ...report, userHome });
    const [problem] = report.problems as readonly { key: string; found: string; wanted: string }[];
    if (problem === undefined) {
      const newWarning = report.warnings.map((warning) => warning.slice(quoted(path, 200).length))
        .find((text) => !app.loaded().warnings.some((warning) => warning.endsWith(text)));
      if (newWarning === undefined) return;
      throw usage(`Cannot set ${quoted(key)}${newWarning}`, "Nothing was written");
    }
    const where = problem.key === "" ? key : problem.key;
    const why = `found ${problem.found}, wanted ${problem.wanted}`;
    throw new PmlError("CONFIG_INVALID", `Cannot set ${quoted(key)}: at ${quoted(where)}, ${why}`, {
      hint: "Nothing was written; see `pml config`",
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
