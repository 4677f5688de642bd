/**
 * The kind of servers that are modules: one file of code, which runs in the sandbox.
 *
 * @module
 */

import type { CodeManifest } from "../../core/manifest.ts";
import type { ServerKind } from "../kind.ts";

/** Modules. Configuration and manifests name them after the runtime of the sandbox. */
export const MODULE: ServerKind<CodeManifest> = {
  name: "deno",
  pinnedAs: "deno",
  isSandboxed: true,
  isOnline: false,
  manifest: {
    read: (reader) => ({
      permissions: reader.permissions(),
      integrity: reader.integrity("integrity", reader.entry.integrity),
    }),
    facts: ({ integrity, permissions }) => ({ integrity, permissions }),
    definition: (manifest, codePath) => ({ path: codePath(manifest) }),
    lines: ({ fqdn, name, integrity, permissions }, { permissionLines }) => [
      ...fqdn === name ? [] : ["a capability of a registry"],
      "a module in the sandbox",
      `its code: ${integrity}`,
      ...permissionLines(permissions).map((line) => `It ${line}`),
    ],
    code: (manifest) => manifest,
  },
};
