/**
 * The modules that ship with PML: their code as text for the sandbox, their metadata for lists.
 *
 * @module
 */

import filesystemCode from "../../builtin/filesystem.min.js" with { type: "text" };
import { __meta__ as filesystem } from "../../builtin/filesystem/meta.ts";
import type { ModuleSource } from "./module_files.ts";

/** The tools that run commands, queries or code: "Always" allows exactly the same again. */
export const RUNS_CODE: ReadonlySet<string> = new Set([
  "shell:exec",
  "sqlite:query",
  "sqlite:execute",
]);

/** Every built-in module by its server's name. */
export function builtins(): ReadonlyMap<string, ModuleSource> {
  const code = new TextEncoder().encode(filesystemCode);
  return new Map([
    ["filesystem", { kind: "builtin", name: "filesystem", code, meta: filesystem }],
  ]);
}
