/**
 * `pml config`: shows what holds and what it costs, and changes it at the person's word.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { intent } from "./_config_intent.ts";
import { writePreset } from "./_config_preset.ts";
import { showConfig } from "./_config_show.ts";
import { wizard } from "./_config_wizard.ts";
import { usage } from "./_failure.ts";
import type { Shown, Typed, Visit } from "./_house.ts";

/** Does what was typed behind `pml config`: one thing of all that it can do. */
export async function config(at: Visit, typed: Typed): Promise<Shown> {
  const { words: [what, ...more], preset, wizard: asks = false } = typed;
  const ways = [what !== undefined, preset !== undefined, asks].filter(Boolean);
  if (ways.length > 1) {
    throw usage("Cannot tell what is wanted of `pml config`: it is several things", HINT);
  }
  if (asks) return await wizard(at, typed);
  if (preset !== undefined) return await writePreset(at, { ...typed, preset });
  if (what === "intent") return await intent(at, typed);
  if (what === undefined || what === "show" && more.length === 0) return await showConfig(at);
  throw usage(`Cannot do ${quoted([what, ...more].join(" "))} with the configuration`, HINT);
}

const HINT = "It is one of show, intent, --preset NAME and --wizard";
