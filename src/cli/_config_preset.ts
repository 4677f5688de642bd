/**
 * `pml config --preset NAME`: writes a preset into a file, and shows how the costs in tokens change.
 *
 * @module
 */

import { isDeepStrictEqual } from "node:util";
import type { App } from "../app/app.ts";
import { Costs, type ListCost } from "./costs.ts";
import { gatewayFrom, type GatewayOptions } from "../config/gateway_options.ts";
import { gatewaySection } from "../config/gateway_section.ts";
import { type Preset, presets } from "../config/presets.ts";
import { objectOf, quoted } from "../core/json.ts";
import { counted } from "../core/amounts.ts";
import { formatNumber } from "./_config_costs.ts";
import { unlistedText } from "./_find.ts";
import { listsByIntent } from "./_config_values.ts";
import { confirmChange, type FileChange, planChange } from "./_config_file.ts";
import { suggestionFor, usage } from "./_failure.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  prepare,
} from "./_command_context.ts";
import type { YamlSetting } from "../config/yaml_text.ts";

/** The change of a file that a preset makes, and its effects. */
export interface PresetPlan {
  readonly change: FileChange;
  /** A text about the costs of a list before and after, and about ignored values of the preset. */
  readonly message: string;
  /** The preset, and the costs before and after, for the JSON output. */
  readonly about: object;
}

/** Writes a preset into `config.yaml`, or into the workspace file. */
export async function writePreset(
  context: CommandContext,
  { preset: name, workspace = false, json }: CommandInput & { readonly preset: string },
): Promise<CommandOutput> {
  const preset = await findPreset(name);
  // The costs are an estimate, so this does not wait for an installation or for a hanging server.
  await prepare(context, undefined, { waitsForAll: false });
  const { message, ...plan } = await presetPlan(context.app, { preset, workspace });
  return await confirmChange(context, { ...plan, details: message, json });
}

/** Returns the changes of a preset in a file and in tokens. */
export async function presetPlan(
  app: App,
  { preset, workspace }: { readonly preset: Preset; readonly workspace: boolean },
): Promise<PresetPlan> {
  const settings = [...settingsOf(preset), ...await hybridRemovals(app, { preset, workspace })];
  const change = await planChange(app, { workspace, settings });
  const costs = new Costs(app);
  const { gateway, intent } = app.config();
  const options = optionsAfter(app, { preset, workspace });
  const [before, after] = [await costs.list(gateway), await costs.list(options)];
  const overridden = overriddenSettings(preset, options);
  const overrideText = overridden.length === 0
    ? ""
    : `\n${app.loaded().file?.path} sets ${overridden.join(", ")}, which has priority here; ` +
      "`--workspace` writes into that file";
  const needsIntent = intent === undefined && listsByIntent(options)
    ? `\nNo intent is set, so "${options.exposure}" lists tools of servers only where a client ` +
      'sends a query: `pml config intent "…"` sets an intent'
    : "";
  const unlisted = unlistedText(app) && `\n${unlistedText(app)}`;
  const message = `${effectText(before, after)}${unlisted}${needsIntent}${overrideText}`;
  const about = {
    preset: preset.name,
    gateway: preset.section,
    tools: { before: before.tools, after: after.tools },
    tokens: { estimated: true, before: before.tokens, after: after.tokens },
  };
  return { change, message, about };
}

/** Returns a sentence about the effect of a preset on the list that clients get. */
function effectText(before: ListCost, after: ListCost): string {
  const [now, later] = [before, after].map(({ tools, tokens }) =>
    `${counted(tools, "tool")}, ${formatNumber(tokens)} tokens`
  );
  return now === later
    ? `Your clients list the same as before: ${now} (estimated)`
    : `Your clients list this now: ${now}. After this change, without a restart: ${later} (estimated)`;
}

/**
 * Returns the settings that delete entries of `gateway.hybrid` in the file, if the preset has no
 * `hybrid` section. Deletes only entries that equal an entry of some preset, because other entries
 * were written by the user.
 */
async function hybridRemovals(
  app: App,
  { preset, workspace }: { readonly preset: Preset; readonly workspace: boolean },
): Promise<readonly YamlSetting[]> {
  const { userConfig, file } = app.loaded();
  const { hybrid } = gatewaySection(
    (workspace ? file?.sections.gateway : userConfig.gateway) ?? {},
  );
  if (preset.section.hybrid !== undefined || hybrid === undefined) return [];
  const entries = Object.entries(objectOf(hybrid));
  const presetEntries = (await presets()).flatMap(({ section }) =>
    Object.entries(section.hybrid ?? {})
  );
  const removals = entries.filter((entry) =>
    presetEntries.some((presetEntry) => isDeepStrictEqual(presetEntry, entry))
  );
  if (removals.length === entries.length) return [{ at: ["gateway", "hybrid"], entry: undefined }];
  return removals.map(([key]) => ({ at: ["gateway", "hybrid", key] as const, entry: undefined }));
}

async function findPreset(name: string): Promise<Preset> {
  const all = await presets();
  const match = all.find((preset) => preset.name === name || preset.alias === name);
  if (match !== undefined) return match;
  const names = all.map(({ name, alias }) => name + (alias === undefined ? "" : ` (${alias})`));
  const hint = suggestionFor(name, {
    known: all.flatMap(({ name, alias }) => [name, ...alias === undefined ? [] : [alias]]),
    otherwise: `Use one of ${names.join(", ")}`,
  });
  throw usage(`Cannot find the preset ${quoted(name)}`, hint);
}

/** Returns a setting for each key of a preset, so that other keys of the section stay. */
function settingsOf({ section: { hybrid = {}, ...rest } }: Preset): readonly YamlSetting[] {
  return [
    ...Object.entries(rest).map(([key, entry]) => ({ at: ["gateway", key] as const, entry })),
    ...Object.entries(hybrid)
      .map(([key, entry]) => ({ at: ["gateway", "hybrid", key] as const, entry })),
  ];
}

/** Returns the settings that still differ from the preset after the change, as `key: value`. */
function overriddenSettings(preset: Preset, after: GatewayOptions): readonly string[] {
  const section = gatewaySection(after);
  return settingsOf(preset).flatMap(({ at: [, key = "", option], entry }) => {
    const value = option === undefined ? section[key] : objectOf(section[key])[option];
    if (isDeepStrictEqual(value, entry)) return [];
    return `${["gateway", key, option].filter(Boolean).join(".")}: ${JSON.stringify(value)}`;
  });
}

/** Returns the settings after the change. The workspace file overrides `config.yaml`. */
function optionsAfter(
  app: App,
  { preset: { overrides }, workspace }: { readonly preset: Preset; readonly workspace: boolean },
): GatewayOptions {
  const { userConfig, file } = app.loaded();
  const fileGateway = app.config().trusted ? file?.sections.gateway : undefined;
  return workspace
    ? gatewayFrom(userConfig.gateway, fileGateway, overrides)
    : gatewayFrom(userConfig.gateway, overrides, fileGateway);
}
