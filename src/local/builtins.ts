/**
 * The modules that ship with PML: their code as text for the sandbox, their metadata for lists.
 *
 * @module
 */

import filesystemCode from "../../builtin/filesystem.min.js" with { type: "text" };
import { __meta__ as filesystem } from "../../builtin/filesystem/meta.ts";
import sqliteCode from "../../builtin/sqlite.min.js" with { type: "text" };
import { __meta__ as sqlite } from "../../builtin/sqlite/meta.ts";
import type { ModuleSource } from "./module_files.ts";

/** Every built-in module by its server's name. */
export function builtins(): ReadonlyMap<string, ModuleSource> {
  return new Map([
    builtin("filesystem", filesystemCode, filesystem),
    builtin("sqlite", sqliteCode, sqlite),
  ]);
}

function builtin(name: string, text: string, meta: unknown): [string, ModuleSource] {
  return [name, { kind: "builtin", name, code: new TextEncoder().encode(text), meta }];
}
