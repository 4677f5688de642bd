/**
 * The modules that ship with PML: their code as text for the sandbox, and their metadata for lists.
 * PML loads this file for the first list or call, not at its start, because it is large.
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
import type { ModuleSource, PathArguments } from "./module_files.ts";

/** Facts about a module that ships with PML. */
interface ShippedFacts {
  readonly grants?: ServerGrants;
  readonly paths?: PathArguments;
}

const SHIPPED: readonly (readonly [code: string, meta: { readonly name: string }, ShippedFacts])[] =
  [
    [filesystemCode, filesystem, { paths: { used: ["path", "paths", "source", "destination"] } }],
    [gitCode, git, { grants: { run: ["git"] }, paths: { entered: ["repo"] } }],
    [shellCode, shell, { grants: { run: ["*"] }, paths: { entered: ["cwd"] } }],
    [sqliteCode, sqlite, { paths: { used: ["path"] } }],
  ];

/** Returns every built-in module by its server's name. */
export function builtins(): ReadonlyMap<string, ModuleSource> {
  const encoder = new TextEncoder();
  return new Map(SHIPPED.map(([text, meta, { grants = {}, paths }]) => {
    const { name } = meta;
    return [name, { kind: "builtin", name, code: encoder.encode(text), meta, grants, paths }];
  }));
}
