/**
 * `pml config --preset NAME`: writes what a preset says, and tells what that changes in tokens.
 *
 * @module
 */

import { isDeepStrictEqual } from "node:util";
import type { App } from "../app/app.ts";
import { gatewayFrom, type GatewayOptions } from "../config/gateway_options.ts";
import { gatewaySection } from "../config/gateway_section.ts";
import { type Preset, presets } from "../config/presets.ts";
import { objectOf, quoted } from "../core/json.ts";
import { number } from "./_config_costs.ts";
import { agreed, type Change, changeOf } from "./_config_file.ts";
import { usage } from "./_failure.ts";
import { type CommandContext, prepare, type Shown, type Typed } from "./_command_context.ts";
import type { Setting } from "./_yaml_text.ts";

/** What a preset would change. */
export interface PresetPlan {
  readonly change: Change;
  /** What a list costs before and after, and what else is to be known. */
  readonly said: string;
  readonly value: unknown;
}

/** Writes a preset into `config.yaml`, or into the workspace file. */
export async function writePreset(
  at: CommandContext,
  { preset: name, workspace = false, json }: Typed & { readonly preset: string },
): Promise<Shown> {
  const preset = await named(name);
  await prepare(at, undefined);
  const plan = await planOf(at.app, { preset, workspace });
  if (json) return { value: plan.value };
  return await agreed(at, { ...plan, command: `pml config --preset ${preset.name}` });
}

/** Says what a preset would change in a file, and in tokens. */
export async function planOf(
  app: App,
  { preset, workspace }: { readonly preset: Preset; readonly workspace: boolean },
): Promise<PresetPlan> {
  const change = await changeOf(app, { workspace, settings: settingsOf(preset) });
  const costs = await app.costs();
  const { gateway } = app.config();
  const after = afterwards(app, { preset, workspace });
  const tokens = {
    before: (await costs.list(gateway)).tokens,
    after: (await costs.list(after)).tokens,
  };
  const others = otherwise(preset, after);
  const overruled = others.length === 0
    ? ""
    : `\n${app.loaded().file?.path} says ${others.join(", ")}, which counts here; ` +
      "`--workspace` writes there";
  const said = `A list costs ${number(tokens.before)} tokens now and ${number(tokens.after)} then` +
    ` (estimated)${overruled}`;
  const value = {
    preset: preset.name,
    path: change.path,
    gateway: preset.section,
    diff: change.diff,
    tokens: { estimated: true, ...tokens },
  };
  return { change, said, value };
}

async function named(name: string): Promise<Preset> {
  const all = await presets();
  const found = all.find((one) => one.name === name || one.alias === name);
  if (found !== undefined) return found;
  const names = all.map((one) => one.name + (one.alias === undefined ? "" : ` (${one.alias})`));
  throw usage(`Cannot find the preset ${quoted(name)}`, `There is ${names.join(", ")}`);
}

/** Key by key, so that what the person says beside them stays. */
function settingsOf({ section: { hybrid = {}, ...rest } }: Preset): readonly Setting[] {
  return [
    ...Object.entries(rest).map(([key, entry]) => ({ at: ["gateway", key] as const, entry })),
    ...Object.entries(hybrid)
      .map(([key, entry]) => ({ at: ["gateway", "hybrid", key] as const, entry })),
  ];
}

/** Gives what holds for keys of the preset, where that is not what the preset says. */
function otherwise(preset: Preset, after: GatewayOptions): readonly string[] {
  const holds = gatewaySection(after);
  return settingsOf(preset).flatMap(({ at: [, key = "", option], entry }) => {
    const held = option === undefined ? holds[key] : objectOf(holds[key])[option];
    if (isDeepStrictEqual(held, entry)) return [];
    return `${["gateway", key, option].filter(Boolean).join(".")}: ${JSON.stringify(held)}`;
  });
}

/** What would hold: the workspace file overrides what the person wants everywhere. */
function afterwards(
  app: App,
  { preset: { said }, workspace }: { readonly preset: Preset; readonly workspace: boolean },
): GatewayOptions {
  const { person, file } = app.loaded();
  const own = app.config().trusted ? file?.sections.gateway : undefined;
  return workspace
    ? gatewayFrom(person.gateway, own, said)
    : gatewayFrom(person.gateway, said, own);
}
