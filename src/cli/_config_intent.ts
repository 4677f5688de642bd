/**
 * `pml config intent`: what the person works on here, which lists of tools are made for.
 *
 * @module
 */

import { quoted, visible } from "../core/json.ts";
import { agreed, changeOf } from "./_config_file.ts";
import { valuesOf } from "./_config_values.ts";
import { usage } from "./_failure.ts";
import type { Shown, Typed, Visit } from "./_house.ts";

const INTENT_MAX = 2_000;

/** Shows the intent; writes one into the workspace file, or takes it away where it is empty. */
export async function intent(at: Visit, { words: [, ...words], json }: Typed): Promise<Shown> {
  if (words.length === 0) return shown(at);
  const said = words.join(" ").trim();
  if (said.length > INTENT_MAX) {
    throw usage(
      `Cannot keep the intent: it has ${said.length} characters`,
      `Say it in at most ${INTENT_MAX}`,
    );
  }
  const entry = said === "" ? undefined : said;
  const settings = [{ at: ["intent"] as const, entry }];
  const change = await changeOf(at.app, { workspace: true, settings });
  const value = { path: change.path, intent: entry ?? null, diff: change.diff };
  if (json) return { value };
  return await agreed(at, { change, value, command: `pml config intent ${quoted(said)}` });
}

function shown({ app }: Visit): Shown {
  const found = valuesOf(app).find(({ key }) => key === "intent");
  const { value = null, from, ignored } = found ?? { from: "default" };
  const path = app.loaded().file?.path;
  const note = ignored === undefined
    ? ""
    : `${path} says ${quoted(String(ignored), INTENT_MAX)}, which is ignored: see \`pml trust\``;
  return {
    value: { intent: value, from, ...(ignored !== undefined && { ignored }) },
    text: value === null ? "There is no intent" : visible(String(value), INTENT_MAX),
    note,
  };
}
