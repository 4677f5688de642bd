/**
 * `pml config`: shows the settings and their costs in tokens, and changes them if the user agrees.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { quoted, visible, withoutUndefined } from "../core/json.ts";
import { costsText, measure } from "./_config_costs.ts";
import { confirmChange, planChange } from "./_config_file.ts";
import { writePreset } from "./_config_preset.ts";
import { readSettingValues, type SettingValue, settingWarnings } from "./_config_values.ts";
import { setValue } from "./_config_set.ts";
import { unlistedText } from "./_find.ts";
import { ruleGroups, ruleLines } from "./_rule_list.ts";
import { wizard } from "./_config_wizard.ts";
import { subcommandOf, usage } from "./_failure.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  prepare,
  withWaitLine,
} from "./_command_context.ts";

const INTENT_MAX = 2_000;
/** The width of the column of keys: the length of the longest key, and a space. */
const KEY_WIDTH = 38;

/** Runs a subcommand of `pml config`, the wizard, or the writing of a preset. Shows all by default. */
export async function config(context: CommandContext, input: CommandInput): Promise<CommandOutput> {
  const { words, preset, wizard: isWizard = false } = input;
  const modes = [words.length > 0, preset !== undefined, isWizard].filter(Boolean);
  if (modes.length > 1) {
    throw usage(
      "Cannot do several things at once: a subcommand, --preset and --wizard exclude each other",
      "Use one of them",
    );
  }
  if (isWizard) return await wizard(context, input);
  if (preset !== undefined) return await writePreset(context, { ...input, preset });
  if (words.length === 0) return await showConfig(context);
  const run = subcommandOf<
    (context: CommandContext, input: CommandInput) => Promise<CommandOutput>
  >(
    "config",
    words,
    {
      show: [showConfig, 0],
      set: [setValue, 0, Infinity],
      intent: [intent, 0, Infinity],
    },
  );
  return await run(context, input);
}

/**
 * Shows the intent if the user typed no words. Otherwise writes the intent into the workspace file. An
 * empty text removes it.
 */
async function intent(
  context: CommandContext,
  { words: [, ...words], json }: CommandInput,
): Promise<CommandOutput> {
  if (words.length === 0) return showIntent(context);
  const intentText = words.join(" ").trim();
  if (intentText.length > INTENT_MAX) {
    throw usage(
      `Cannot keep the intent: it has ${intentText.length} characters`,
      `Use at most ${INTENT_MAX} characters`,
    );
  }
  const entry = intentText === "" ? undefined : intentText;
  const settings = [{ at: ["intent"] as const, entry }];
  const change = await planChange(context.app, { workspace: true, settings });
  return await confirmChange(context, { change, about: { intent: entry ?? null }, json });
}

function showIntent({ app }: CommandContext): CommandOutput {
  const entry = readSettingValues(app).find(({ key }) => key === "intent");
  const { value = null, from, ignored } = entry ?? { from: "default" };
  const path = app.loaded().file?.path;
  const note = ignored === undefined
    ? ""
    : `${path} sets ${quoted(String(ignored), INTENT_MAX)}, which is ignored: see \`pml trust\``;
  return {
    value: { intent: value, from, ...withoutUndefined({ ignored }) },
    text: value === null ? "No intent is set" : visible(String(value), INTENT_MAX),
    note,
  };
}

/** Shows all settings, rules, warnings and costs. Asks servers for their tools first. */
async function showConfig(context: CommandContext): Promise<CommandOutput> {
  const { app } = context;
  // The costs are an estimate, so this does not wait for an installation or for a hanging server.
  await prepare(context, undefined, { waitsForAll: false });
  const values = readSettingValues(app);
  const tokens = await withWaitLine("counting tokens", () => measure(app));
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
      limitsLine(values),
      "",
      "Rules (`pml rules` shows their last use):",
      ...ruleLines(app),
      ...warnings.map((warning) => `warning: ${visible(warning, 400)}`),
      "",
      costsText(tokens, app.config().gateway.exposure),
    ].join("\n"),
    note: unlistedText(app),
  };
}

function entryOf({ key, value = null, ...rest }: SettingValue): readonly [string, unknown] {
  return [key, { value, ...rest }];
}

function lineOf({ key, value, from, ignored }: SettingValue, app: App): string {
  const ignoredText = ignored === undefined
    ? ""
    : `; ${valueText(ignored)} in ${app.loaded().file?.path} is ignored: the file is not trusted`;
  return `${key.padEnd(KEY_WIDTH)} ${valueText(value)} (${from}${ignoredText})`;
}

/** Returns a line about the limits that have their defaults. */
function limitsLine(values: readonly SettingValue[]): string {
  const isAnySet = values.some(({ key }) => key.startsWith("limits."));
  const key = isAnySet ? "other limits" : "limits";
  return `${key.padEnd(KEY_WIDTH)} as docs/limits.md lists them (default)`;
}

function valueText(value: unknown): string {
  return value === undefined ? "none" : visible(JSON.stringify(value), 400);
}
