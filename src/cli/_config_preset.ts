/**
 * `pml config --preset NAME`: writes a preset into a file, and shows what that changes in tokens.
 *
 * @module
 */

import { isDeepStrictEqual } from "node:util";
import type { App } from "../app/app.ts";
import { Costs } from "./costs.ts";
import { gatewayFrom, type GatewayOptions } from "../config/gateway_options.ts";
import { gatewaySection } from "../config/gateway_section.ts";
import { type Preset, presets } from "../config/presets.ts";
import { objectOf, quoted } from "../core/json.ts";
import { formatNumber } from "./_config_costs.ts";
import { agreed, changeOf, type FileChange } from "./_config_file.ts";
import { usage } from "./_failure.ts";
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
  const change = await changeOf(app, { workspace, settings: settingsOf(preset) });
  const costs = new Costs(app);
  const { gateway } = app.config();
  const after = afterwards(app, { preset, workspace });
  const tokens = {
    before: (await costs.list(gateway)).tokens,
    after: (await costs.list(after)).tokens,
  };
  const others = otherwise(preset, after);
  const overruled = others.length === 0
    ? ""
    : `\n${app.loaded().file?.path} says ${others.join(", ")}, which wins here; ` +
      "`--workspace` writes there";
  const message =
    `A list costs ${formatNumber(tokens.before)} tokens now and ${
      formatNumber(tokens.after)
    } after this` +
    ` (estimated)${overruled}`;
  const about = {
    preset: preset.name,
    gateway: preset.section,
    tokens: { estimated: true, ...tokens },
  };
  return { change, message, about };
}

async function named(name: string): Promise<Preset> {
  const all = await presets();
  const preset = all.find((one) => one.name === name || one.alias === name);
  if (preset !== undefined) return preset;
  const names = all.map((one) => one.name + (one.alias === undefined ? "" : ` (${one.alias})`));
  throw usage(`Cannot find the preset ${quoted(name)}`, `Use one of ${names.join(", ")}`);
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
