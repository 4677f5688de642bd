/**
 * `pml check`: checks a module and shows its author what to change.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import { openAuthors } from "../authoring/open_authors.ts";
import { shownPlace } from "../core/errors.ts";
import { nearName } from "../core/near_name.ts";
import { pathExists } from "../config/workspace.ts";
import { quoted, visible } from "../core/json.ts";
import { namesIn } from "../io/private_files.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";
import { typedPath } from "./command_process.ts";

/** Returns the path of the most similar name in the folder of a missing file; undefined if there is none. */
async function nearFile(file: string): Promise<string | undefined> {
  const folder = dirname(file);
  const names = await namesIn(typedPath(folder)).catch(() => []);
  const near = nearName(basename(file), names);
  return near === undefined ? undefined : join(folder, near);
}

/** The states of a check as text, padded to the same width. */
const STATE_TEXTS = { ok: "ok  ", failed: "FAIL", warning: "warn" };

/** Checks a module. The exit code is 1 if a check failed. */
export async function check(
  { app, signal }: CommandContext,
  { words: [file = ""], types = true }: CommandInput,
): Promise<CommandOutput> {
  const { report } = await (await openAuthors(app)).checkModule(typedPath(file), signal, types);
  const near = pathExists(typedPath(file)) ? undefined : await nearFile(file);
  const lines = report.checks.map(({ name, state, message, hint: ownHint, ...place }) => {
    const hint = near === undefined ? ownHint : `Did you mean ${quoted(near, 300)}?`;
    const where = place.line === undefined ? "" : `${shownPlace(visible(file, 300), place)}: `;
    return `${STATE_TEXTS[state]} ${name}: ${where}${message}${hint ? `\n     ${hint}` : ""}`;
  });
  const count = (state: keyof typeof STATE_TEXTS) =>
    report.checks.filter((check) => check.state === state).length;
  const end = `${count("failed")} failed, ${count("warning")} to look at, ${count("ok")} ok`;
  const code = report.ok ? 0 : 1;
  return { value: report, text: [visible(file, 300), ...lines, end].join("\n"), code };
}
