/**
 * The modules that ship with PML: their code as text for the sandbox, their metadata for lists.
 *
 * @module
 */

import filesystemCode from "../../builtin/filesystem.min.js" with { type: "text" };
import { __meta__ as filesystem } from "../../builtin/filesystem/meta.ts";
import gitCode from "../../builtin/git.min.js" with { type: "text" };
import { __meta__ as git } from "../../builtin/git/meta.ts";
import type { ModuleSource } from "./module_files.ts";

/** Every built-in module by its server's name. */
export function builtins(): ReadonlyMap<string, ModuleSource> {
  const code = (text: string) => new TextEncoder().encode(text);
  return new Map([
    ["filesystem", {
      kind: "builtin",
      name: "filesystem",
      code: code(filesystemCode),
      meta: filesystem,
    }],
    ["git", { kind: "builtin", name: "git", code: code(gitCode), meta: git }],
  ]);
}
