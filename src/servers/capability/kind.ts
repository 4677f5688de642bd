/**
 * The server kind "capability": code or a plan that can only call tools. It is saved by the user,
 * or published in a registry.
 *
 * @module
 */

import type { CodeManifest } from "../manifest.ts";
import { parseToolId } from "../../core/tool_id.ts";
import type { ModuleDefinition, ServerKind } from "../kind.ts";

/** The manifest of a capability. Its code is the JSON of `pml capability export`, not a module. */
export interface CapabilityManifest extends CodeManifest {
  /** The tools that the manifest declares as called. */
  readonly calls: readonly string[];
}

const CALLS = { what: "names of tools", is: (name: string) => parseToolId(name) === name };

/** The kind of capabilities. Their code is pinned like the code of a module. */
export const CAPABILITY: ServerKind<CapabilityManifest, ModuleDefinition> = {
  name: "capability",
  pinnedAs: "deno",
  isSandboxed: true,
  isOnline: false,
  notifies: false,
  checksItself: false,
  isSaved: true,
  definition: {
    types: [],
    describe: () => "a capability of a registry: it calls tools, and nothing else",
    identity: () => ({}),
    module: (definition) => definition,
  },
  manifest: {
    text: {
      title: "capability",
      summary: "It is code or a plan that calls the tools named here, and does nothing else. PML " +
        "judges each of these calls by your rules.",
    },
    isAction: true,
    read: (reader) => ({
      permissions: reader.permissions(),
      integrity: reader.integrity("integrity", reader.entry.integrity),
      calls: reader.texts("tools_used", reader.entry.tools_used, CALLS),
    }),
    facts: ({ integrity, permissions }) => ({ integrity, permissions }),
    definition: (manifest, codePath) => ({ path: codePath(manifest) }),
    lines: ({ fqdn, name, integrity, calls }) => [
      ...fqdn === name ? [] : ["a capability of a registry"],
      "code or a plan that calls tools, and nothing else",
      `its code: ${integrity}`,
      ...calls.map((tool) => `It says that it calls ${tool}, which is judged by itself`),
    ],
    code: (manifest) => manifest,
    calls: ({ calls }) => calls,
  },
};
