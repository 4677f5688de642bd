/**
 * The server kind "deno": modules, which are one file of code and run in the sandbox.
 *
 * @module
 */

import { quoted } from "../../core/json.ts";
import type { CodeManifest } from "../manifest.ts";
import { object, setting } from "../../core/value_schema.ts";
import type { ModuleDefinition, ServerKind } from "../kind.ts";

/** The kind of modules. Its name in configuration and manifests is the runtime of the sandbox. */
export const MODULE: ServerKind<CodeManifest, ModuleDefinition> = {
  name: "deno",
  pinnedAs: "deno",
  isSandboxed: true,
  isOnline: false,
  notifies: false,
  checksItself: false,
  definition: {
    types: ["deno"],
    forms: ({ type, path, flag, settings: tools }) => {
      const code = { path: setting(path, "The file of the module.") };
      const confine = setting(flag, "Ignored: a module always runs in the sandbox.", true);
      return {
        own: { deno: object({ ...type("deno"), ...code }, { confine, tools }) },
        clients: {},
      };
    },
    read: ({ json, names, settings, pathOf }) => {
      const { path, confine } = json as Pick<ModuleDefinition, "path" | "confine">;
      return { ...names, path: pathOf(path), confine, ...settings };
    },
    describe: ({ path }) => `a module in the sandbox, from the file ${quoted(path, Infinity)}`,
    identity: () => ({}),
    module: (definition) => definition,
  },
  manifest: {
    text: {
      title: "module",
      summary:
        "It is a module: PML runs its code in a sandbox, with no more than the permissions listed here.",
      listsPermissions: true,
    },
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
