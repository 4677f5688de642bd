/**
 * `pml config set`: writes one setting, after the whole file was read as PML would read it.
 *
 * @module
 */

import { join } from "node:path";
import type { App } from "../app/app.ts";
import { readWorkspaceFile } from "../config/file.ts";
import { readPerson } from "../config/person.ts";
import { PmlError } from "../core/errors.ts";
import { type JsonObject, memberOf, quoted } from "../core/json.ts";
import { agreed, changeOf, type FileChange } from "./_config_file.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { OTHER_COMMANDS } from "./_setting_keys.ts";

/** Writes one setting into the user's `config.yaml`, or into the workspace file. */
export async function setValue(
  at: CommandContext,
  { words: [, key = "", ...valueWords], workspace = false, json }: Typed,
): Promise<Shown> {
  const [first = "", ...rest] = key.split(".");
  if (first === "" || rest.includes("") || valueWords.length === 0) {
    throw usage(
      `Cannot set ${quoted(key)}: a key and a value are wanted`,
      "Write `pml config set limits.children 4`; null removes a setting",
    );
  }
  const other = memberOf(OTHER_COMMANDS, first);
  if (other !== undefined) throw usage(`Cannot set ${quoted(key)} here`, `Use ${other}`);
  const value = valueOf(valueWords.join(" "));
  const settings = [{ at: [first, ...rest] as const, entry: value ?? undefined }];
  const change = await changeOf(at.app, { workspace, settings });
  await mustBeReadable(at.app, { change, workspace, key });
  return await agreed(at, { change, about: { key, value }, json });
}

/** Reads a value as JSON, or else as a text. */
function valueOf(text: string): JsonObject[string] {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Throws if the new text is invalid, before it is written. */
async function mustBeReadable(
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
    else await readPerson(path, { ...report, userHome });
    const [problem] = report.problems as readonly { key: string; found: string; wanted: string }[];
    if (problem === undefined) {
      const added = report.warnings.map((one) => one.slice(quoted(path, 200).length))
        .find((one) => !app.loaded().warnings.some((old) => old.endsWith(one)));
      if (added === undefined) return;
      throw usage(`Cannot set ${quoted(key)}${added}`, "Nothing was written");
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
