/**
 * The presets of `config/gateway-presets.yaml`: named ways to show tools. `pml config --preset
 * NAME` writes the preset's `gateway` section; an alias is another name for it.
 *
 * @module
 */

import text from "../../config/gateway-presets.yaml" with { type: "text" };
import { gatewayOptions, type GatewayOverrides, type GatewaySection } from "./gateway_options.ts";
import { loadYaml } from "./yaml.ts";

/** A preset. */
export interface Preset {
  readonly name: string;
  /** The other name of the preset, if it has one. */
  readonly alias: string | undefined;
  /** A description in one sentence. */
  readonly does: string;
  /** The section that the preset writes. */
  readonly section: GatewaySection;
  /** The same settings in the form that `GatewayOptions` has. */
  readonly overrides: GatewayOverrides;
}

interface PresetEntry extends Pick<Preset, "does"> {
  readonly alias?: string;
  readonly gateway: GatewaySection;
}

/** Returns all presets, the smallest first. */
export async function presets(): Promise<readonly Preset[]> {
  const { parse } = await loadYaml();
  // The file ships with PML, and a test reads all of it.
  const entries = Object.entries(parse(text) as Record<string, PresetEntry>);
  return entries.map(([name, { alias, does, gateway }]) => ({
    name,
    alias,
    does,
    section: gateway,
    overrides: gatewayOptions(gateway, () => {}),
  }));
}
