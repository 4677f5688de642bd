/**
 * Converts saved capabilities to the form in which a registry offers them.
 *
 * @module
 */

import { canonicalJson, type JsonObject } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import type { SavedCapability } from "../registry/registry_store.ts";
import {
  type Capability,
  parseExported as parseExportForm,
  toFileJson,
} from "../servers/capability/capability.ts";
import { findToolNames } from "./capability_parameters.ts";
import { parsePlan } from "./plan.ts";

/** The maximum number of tasks of a published plan. */
const MOST_TASKS = 1_000;

/** Parses the JSON of an export. Throws a TypeError with the reason. */
export function parseExported(json: JsonObject): SavedCapability {
  return toSavedCapability(parseExportForm(json));
}

/** Returns a capability in the form in which a registry offers it. */
export function toSavedCapability(capability: Capability): SavedCapability {
  const { kind, text, description, parameters, toolsUsed } = capability;
  const names = kind === "code"
    ? findToolNames(capability)
    : parsePlan(parseExact(text), { maxTasks: MOST_TASKS, params: {} }).tasks.map(({ tool }) =>
      tool
    );
  const calls = sortByNames(Object.keys(toolsUsed), names);
  // Clients identify a capability by the hash of its canonical form.
  const code = new TextEncoder().encode(canonicalJson(toFileJson(capability)));
  return { code, kind, text, description, parameters, calls };
}

/** Returns tool ids in the order of `names`. A name may be a variant of an id: `a_b` for `a-b`. */
function sortByNames(ids: readonly string[], names: readonly string[]): readonly string[] {
  const normalize = (name: string) => name.replace(/[^A-Za-z0-9]+/g, "_");
  const byName = new Map(ids.map((id) => [normalize(id), id]));
  return [...new Set([...names.flatMap((name) => byName.get(normalize(name)) ?? []), ...ids])];
}
