/**
 * The presets: ways to show tools under one name, as `config/gateway-presets.yaml` has them. What
 * stands there under `gateway` is what `pml config --preset NAME` writes; an alias is another name.
 *
 * @module
 */

import text from "../../config/gateway-presets.yaml" with { type: "text" };
import { gatewayOf, type GatewaySection, type SaidOfGateway } from "./gateway_options.ts";

/** A preset. */
export interface Preset {
  readonly name: string;
  /** Its other name, if it has one. */
  readonly alias: string | undefined;
  /** What it does, in a sentence. */
  readonly does: string;
  /** What it writes. */
  readonly section: GatewaySection;
  /** The same, as a configuration holds it. */
  readonly said: SaidOfGateway;
}

interface Entry extends Pick<Preset, "does"> {
  readonly alias?: string;
  readonly gateway: GatewaySection;
}

/** Gives every preset, the smallest first. */
export async function presets(): Promise<readonly Preset[]> {
  const { parse } = await import("yaml");
  // The file ships with PML, and a test reads all of it.
  const entries = Object.entries(parse(text) as Record<string, Entry>);
  return entries.map(([name, { alias, does, gateway }]) => ({
    name,
    alias,
    does,
    section: gateway,
    said: gatewayOf(gateway, () => {}),
  }));
}
