/**
 * A saved capability in the form in which a registry offers it.
 *
 * @module
 */

import { canonical, type JsonObject } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
import type { SavedCapability } from "../registry/registry_store.ts";
import { type Capability, exported, fileForm } from "../servers/capability/capability.ts";
import { namedTools } from "./capability_parameters.ts";
import { parsePlan } from "./plan.ts";

/** The maximum number of tasks of a published plan. */
const MOST_TASKS = 1_000;

/** Parses the JSON of an export. Throws a TypeError with the reason. */
export function exportedIn(json: JsonObject): SavedCapability {
  return savedIn(exported(json));
}

/** Returns a capability in the form in which a registry offers it. */
export function savedIn(capability: Capability): SavedCapability {
  const { kind, text, description, parameters, toolsUsed } = capability;
  const names = kind === "code"
    ? namedTools(capability)
    : parsePlan(parseExact(text), { most: MOST_TASKS, params: {} }).tasks.map(({ tool }) => tool);
  const calls = inOrder(Object.keys(toolsUsed), names);
  // Clients identify a capability by the hash of its canonical form.
  const code = new TextEncoder().encode(canonical(fileForm(capability)));
  return { code, kind, text, description, parameters, calls };
}

/** Returns tool ids in the order of `names`, where they may be written in another form. */
function inOrder(ids: readonly string[], names: readonly string[]): readonly string[] {
  const plain = (name: string) => name.replace(/[^A-Za-z0-9]+/g, "_");
  const byName = new Map(ids.map((id) => [plain(id), id]));
  return [...new Set([...names.flatMap((name) => byName.get(plain(name)) ?? []), ...ids])];
}
