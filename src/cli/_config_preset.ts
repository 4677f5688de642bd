/**
 * `pml config --preset NAME`: writes a preset into a file, and shows what that changes in tokens.
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
import { listsByIntent } from "./_config_values.ts";
import { agreed, changeOf, type FileChange } from "./_config_file.ts";
import { suggestionFor, usage } from "./_failure.ts";
import { type CommandContext, prepare, type Shown, type Typed } from "./_command_context.ts";
import type { YamlSetting } from "../config/yaml_text.ts";

/** The change that a preset makes. */
export interface PresetPlan {
  readonly change: FileChange;
  /** The costs of a list before and after, and the ignored values of the preset. */
  readonly message: string;
  readonly about: object;
}

/** Writes a preset into `config.yaml`, or into the workspace file. */
export async function writePreset(
  at: CommandContext,
  { preset: name, workspace = false, json }: Typed & { readonly preset: string },
): Promise<Shown> {
  const preset = await named(name);
  await prepare(at, undefined);
  const { message, ...plan } = await presetPlan(at.app, { preset, workspace });
  return await agreed(at, { ...plan, said: message, json });
}

/** Returns the changes of a preset in a file and in tokens. */
export async function presetPlan(
  app: App,
  { preset, workspace }: { readonly preset: Preset; readonly workspace: boolean },
): Promise<PresetPlan> {
  const settings = [...settingsOf(preset), ...await unusedSettings(app, { preset, workspace })];
  const change = await changeOf(app, { workspace, settings });
  const costs = new Costs(app);
  const { gateway, intent } = app.config();
  const options = afterwards(app, { preset, workspace });
  const [before, after] = [await costs.list(gateway), await costs.list(options)];
  const others = otherwise(preset, options);
  const overruled = others.length === 0
    ? ""
    : `\n${app.loaded().file?.path} says ${others.join(", ")}, which wins here; ` +
      "`--workspace` writes there";
  const needsIntent = intent === undefined && listsByIntent(options)
    ? `\nThere is no intent, so "${options.exposure}" lists no tools that fit it: ` +
      '`pml config intent "…"` writes one'
    : "";
  const message = `${effectText(before, after)}${needsIntent}${overruled}`;
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
    : `Your clients list this now: ${now}. After this change, at once: ${later} (estimated)`;
}

/**
 * Returns settings that remove values of other presets which have no effect with this one. Values
 * that no preset has are the user's, and stay.
 */
async function unusedSettings(
  app: App,
  { preset, workspace }: { readonly preset: Preset; readonly workspace: boolean },
): Promise<readonly YamlSetting[]> {
  const { person, file } = app.loaded();
  const { hybrid } = gatewaySection((workspace ? file?.sections.gateway : person.gateway) ?? {});
  if (preset.section.hybrid !== undefined || hybrid === undefined) return [];
  const entries = Object.entries(objectOf(hybrid));
  const written = (await presets()).flatMap(({ section }) => Object.entries(section.hybrid ?? {}));
  const unused = entries.filter((entry) => written.some((one) => isDeepStrictEqual(one, entry)));
  if (unused.length === entries.length) return [{ at: ["gateway", "hybrid"], entry: undefined }];
  return unused.map(([key]) => ({ at: ["gateway", "hybrid", key] as const, entry: undefined }));
}

async function named(name: string): Promise<Preset> {
  const all = await presets();
  const preset = all.find((one) => one.name === name || one.alias === name);
  if (preset !== undefined) return preset;
  const names = all.map((one) => one.name + (one.alias === undefined ? "" : ` (${one.alias})`));
  const hint = suggestionFor(name, {
    known: all.flatMap(({ name, alias }) => [name, ...alias === undefined ? [] : [alias]]),
    otherwise: `Use one of ${names.join(", ")}`,
  });
  throw usage(`Cannot find the preset ${quoted(name)}`, hint);
}

/** Each key is set on its own, so that other keys of the section stay. */
function settingsOf({ section: { hybrid = {}, ...rest } }: Preset): readonly YamlSetting[] {
  return [
    ...Object.entries(rest).map(([key, entry]) => ({ at: ["gateway", key] as const, entry })),
    ...Object.entries(hybrid)
      .map(([key, entry]) => ({ at: ["gateway", "hybrid", key] as const, entry })),
  ];
}

/** Returns the settings that would still differ from the preset after it is written. */
function otherwise(preset: Preset, after: GatewayOptions): readonly string[] {
  const holds = gatewaySection(after);
  return settingsOf(preset).flatMap(({ at: [, key = "", option], entry }) => {
    const value = option === undefined ? holds[key] : objectOf(holds[key])[option];
    if (isDeepStrictEqual(value, entry)) return [];
    return `${["gateway", key, option].filter(Boolean).join(".")}: ${JSON.stringify(value)}`;
  });
}

/** Returns the settings after the change. The workspace file overrides `config.yaml`. */
function afterwards(
  app: App,
  { preset: { overrides }, workspace }: { readonly preset: Preset; readonly workspace: boolean },
): GatewayOptions {
  const { person, file } = app.loaded();
  const own = app.config().trusted ? file?.sections.gateway : undefined;
  return workspace
    ? gatewayFrom(person.gateway, own, overrides)
    : gatewayFrom(person.gateway, overrides, own);
}
