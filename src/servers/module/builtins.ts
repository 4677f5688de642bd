/**
 * The modules that ship with PML: their code as text for the sandbox, and their metadata for lists.
 * The first list or call loads them, because they would make the start half as large again.
 *
 * @module
 */

import filesystemCode from "../../../builtin/filesystem.min.js" with { type: "text" };
import { __meta__ as filesystem } from "../../../builtin/filesystem/meta.ts";
import gitCode from "../../../builtin/git.min.js" with { type: "text" };
import { __meta__ as git } from "../../../builtin/git/meta.ts";
import shellCode from "../../../builtin/shell.min.js" with { type: "text" };
import { __meta__ as shell } from "../../../builtin/shell/meta.ts";
import sqliteCode from "../../../builtin/sqlite.min.js" with { type: "text" };
import { __meta__ as sqlite } from "../../../builtin/sqlite/meta.ts";
import type { ServerGrants } from "../../policy/grants.ts";
import type { ModuleSource } from "./module_files.ts";

const SHIPPED:
  readonly (readonly [code: string, meta: { readonly name: string }, ServerGrants?])[] = [
    [filesystemCode, filesystem],
    [gitCode, git, { run: ["git"] }],
    [shellCode, shell, { run: ["*"] }],
    [sqliteCode, sqlite],
  ];

/** Returns every built-in module by its server's name. */
export function builtins(): ReadonlyMap<string, ModuleSource> {
  const encoder = new TextEncoder();
  return new Map(SHIPPED.map(([text, meta, grants = {}]) => {
    const { name } = meta;
    return [name, { kind: "builtin", name, code: encoder.encode(text), meta, grants }];
  }));
}
