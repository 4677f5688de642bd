/**
 * What is told of capabilities: whose name hides them, and whether one can run at all.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { parseExact } from "../core/exact_json.ts";
export { unhidden } from "../policy/trust_subject.ts";
import { getToolRouting, isListedLocal } from "../servers/cloud/routing.ts";
import type { Capability } from "../workflow/capability.ts";
export { exportForm } from "../workflow/capability_saving.ts";
import type { App } from "./app.ts";

/** Throws if code or a plan could not run as it stands. Nothing of it runs. */
export async function assertRuns(
  app: App,
  capability: Pick<Capability, "kind" | "text">,
): Promise<void> {
  if (capability.kind === "plan") {
    const { strictTool } = await import("../gateway/strict_tool.ts");
    const schemas = await app.schemas();
    const plan = parseExact(capability.text);
    await schemas.ownArguments(strictTool("execute_workflow", 1), { plan }, "the plan");
  }
  await (await app.workflow()).assertRuns(capability);
}

/** Says that capabilities are hidden by a server. */
export function hidden(namespace: string, owner: string): string {
  return `The capabilities of ${quoted(namespace)} are hidden: ${quoted(namespace)} is ${owner}; ` +
    "rename them with `pml capability rename`";
}

/** Returns who has a name that a namespace may not have; undefined if it may. */
export function ownerOf(app: App, name: string): string | undefined {
  const { builtins, policy, registryServers: used } = app;
  const { config: { servers }, loaded: { file } } = policy.now;
  const has = (all: readonly { readonly name: string }[] = []) =>
    all.some((own) => own.name === name);
  const off = policy.disabledIn(name);
  const owners: readonly (readonly [string, boolean | undefined])[] = [
    ["that a file of yours defines", has(servers)],
    ["that the workspace file defines", has(file?.servers)],
    [`that ${quoted(`${off}`, 400)} disables`, off !== undefined],
    ["that a registry has", used?.names().includes(name) || used?.offers.has(name)],
    [
      "that PML knows by this name",
      builtins.has(name) || isListedLocal(name) || getToolRouting(name) === "cloud",
    ],
  ];
  const owner = owners.find(([, isIts]) => isIts)?.[0];
  return owner && `a server ${owner}`;
}
