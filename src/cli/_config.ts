/**
 * `pml config`: shows the settings and their costs in tokens, and changes them if the user agrees.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { defined, quoted, visible } from "../core/json.ts";
import { costsText, measure } from "./_config_costs.ts";
import { agreed, changeOf } from "./_config_file.ts";
import { writePreset } from "./_config_preset.ts";
import { type SettingValue, settingWarnings, valuesOf } from "./_config_values.ts";
import { setValue } from "./_config_set.ts";
import { ruleGroups, ruleLines } from "./_rule_list.ts";
import { wizard } from "./_config_wizard.ts";
import { subcommandOf, usage } from "./_failure.ts";
import { type CommandContext, prepare, type Shown, type Typed } from "./_command_context.ts";

const INTENT_MAX = 2_000;
/** The length of the longest key, and a space. */
const WIDTH = 38;

/** Runs one of the things that `pml config` can do. */
export async function config(at: CommandContext, typed: Typed): Promise<Shown> {
  const { words, preset, wizard: asks = false } = typed;
  const ways = [words.length > 0, preset !== undefined, asks].filter(Boolean);
  if (ways.length > 1) {
    throw usage(
      "Cannot do several things at once: a subcommand, --preset and --wizard exclude each other",
      "Use one of them",
    );
  }
  if (asks) return await wizard(at, typed);
  if (preset !== undefined) return await writePreset(at, { ...typed, preset });
  if (words.length === 0) return await showConfig(at);
  const does = subcommandOf<(at: CommandContext, typed: Typed) => Promise<Shown>>("config", words, {
    show: [showConfig, 0],
    set: [setValue, 0, Infinity],
    intent: [intent, 0, Infinity],
  });
  return await does(at, typed);
}

/**
 * Shows the intent if no words are given. Otherwise writes the intent into the workspace file; an
 * empty text removes it.
 */
async function intent(at: CommandContext, { words: [, ...words], json }: Typed): Promise<Shown> {
  if (words.length === 0) return shownIntent(at);
  const intentText = words.join(" ").trim();
  if (intentText.length > INTENT_MAX) {
    throw usage(
      `Cannot keep the intent: it has ${intentText.length} characters`,
      `Say it in at most ${INTENT_MAX}`,
    );
  }
  const entry = intentText === "" ? undefined : intentText;
  const settings = [{ at: ["intent"] as const, entry }];
  const change = await changeOf(at.app, { workspace: true, settings });
  return await agreed(at, { change, about: { intent: entry ?? null }, json });
}

function shownIntent({ app }: CommandContext): Shown {
  const entry = valuesOf(app).find(({ key }) => key === "intent");
  const { value = null, from, ignored } = entry ?? { from: "default" };
  const path = app.loaded().file?.path;
  const note = ignored === undefined
    ? ""
    : `${path} says ${quoted(String(ignored), INTENT_MAX)}, which is ignored: see \`pml trust\``;
  return {
    value: { intent: value, from, ...defined({ ignored }) },
    text: value === null ? "There is no intent" : visible(String(value), INTENT_MAX),
    note,
  };
}

/** Shows all settings, warnings and costs. Servers are asked for their tools first. */
async function showConfig(at: CommandContext): Promise<Shown> {
  const { app } = at;
  await prepare(at, undefined);
  const values = valuesOf(app);
  const tokens = await measure(app);
  const fullTokens = tokens.modes.find(({ name }) => name === "full_proxy")?.tokens ?? 0;
  const tools = app.catalog.list().map(({ id }) => id);
  const warnings = settingWarnings(app, { tools, fullTokens });
  return {
    value: {
      values: Object.fromEntries(values.map(entryOf)),
      rules: ruleGroups(app).flatMap(({ rows }) => rows),
      warnings,
      tokens,
    },
    text: [
      ...values.map((value) => lineOf(value, app)),
      "",
      "Rules (`pml rules` shows their last use):",
      ...ruleLines(app),
      ...warnings.map((warning) => `warning: ${visible(warning, 400)}`),
      "",
      costsText(tokens, app.config().gateway.exposure),
    ].join("\n"),
  };
}

function entryOf({ key, value = null, ...rest }: SettingValue): readonly [string, unknown] {
  return [key, { value, ...rest }];
}

function lineOf({ key, value, from, ignored }: SettingValue, app: App): string {
  const but = ignored === undefined
    ? ""
    : `; ${written(ignored)} in ${app.loaded().file?.path} is ignored: the file is not trusted`;
  return `${key.padEnd(WIDTH)} ${written(value)} (${from}${but})`;
}

function written(value: unknown): string {
  return value === undefined ? "none" : visible(JSON.stringify(value), 400);
}
