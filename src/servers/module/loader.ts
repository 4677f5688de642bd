/**
 * Loads modules: their bytes and hash without running them, and their metadata in a child without
 * grants. Metadata is read once per hash.
 *
 * @module
 */

import { basename, join } from "node:path";
import { PmlError, shownPlace } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import {
  type ModuleMeta,
  NO_PERMISSIONS,
  parseModuleMeta,
  type Permissions,
  type ToolDefinition,
} from "../../protocol/tool.ts";
import { readCache, writeCache } from "../../io/kept.ts";
import type { ServerGrants } from "../../policy/grants.ts";
import { assertIntegrity } from "../../policy/integrity.ts";
import { BUNDLE, findImport } from "./imports.ts";
import { metaComment, unexported } from "./meta_comment.ts";
import { type ModuleCode, type ModuleSource, unloadable } from "./module_files.ts";
import type { ModuleReader } from "./module_files.ts";

/** A module with its metadata. */
export interface Module extends ModuleCode {
  readonly name: string;
  readonly meta: ModuleMeta;
  /** The file of a user's module, whose author knows its lines. */
  readonly file?: string | undefined;
  /** The definitions of its tools. It is the same array as long as the code is the same. */
  readonly definitions: readonly ToolDefinition[];
}

/** The report of a child without grants about a module. */
export interface Inspection {
  readonly meta: unknown;
  readonly exports: readonly string[];
}

/** A module as it may run now. */
export interface ModuleUse {
  readonly source: ModuleSource;
  /** The hash of the approved code; undefined if PML ships the code. */
  readonly approved: string | undefined;
  /** All permissions that its tools may ask for, if its registry listed them. */
  readonly promised?: Permissions | undefined;
  /** The user's grants beyond the workspace. */
  readonly grants: ServerGrants | undefined;
}

/** Runs modules without any grant. */
export interface ModuleInspector {
  /** The maximum number of bytes that a module may have now. */
  readonly moduleBytes: number;
  /** Returns the metadata and the exports of a module. */
  inspect(module: NamedModule): Promise<Inspection>;
}

/** The code of a module, and how messages name it. */
export interface NamedModule {
  readonly name: string;
  /** The path of its file, if it has one. */
  readonly file?: string | undefined;
  readonly code: Uint8Array;
}

/** Loads modules and caches them by their hash. */
export class Loader {
  readonly #home: string;
  readonly #files: ModuleReader;
  readonly #inspector: ModuleInspector;
  readonly #modules = new Map<string, Promise<Module>>();
  /** The modules of these promises, once they are there. */
  readonly #loaded = new Map<string, Module>();

  /** Creates a loader that stores metadata in the PML home, by hash. */
  constructor(home: string, files: ModuleReader, inspector: ModuleInspector) {
    this.#home = home;
    this.#files = files;
    this.#inspector = inspector;
  }

  /**
   * Loads a module with its metadata. The bytes whose hash is compared here are the bytes that run;
   * a later read of the file could return others. Throws `INTEGRITY_MISMATCH` if they are not the
   * approved ones.
   */
  async load(use: ModuleUse): Promise<Module> {
    const { source, promised } = use;
    const { key, identified } = this.#identify(use);
    const module = await (this.#modules.get(key) ?? this.#begin(key, source, identified));
    // guard: promised
    if (promised !== undefined) assertPromised(module.meta, promised);
    return module;
  }

  /** Returns a module whose approved code was loaded before; undefined if it was not. */
  loaded(use: ModuleUse): Module | undefined {
    try {
      return this.#loaded.get(this.#identify(use).key);
    } catch {
      return undefined; // loading it reports why
    }
  }

  #identify({ source, approved }: ModuleUse) {
    const { name } = source;
    const draft = source.kind === "file" ? source.draft : undefined;
    const identified = draft ?? this.#files.identify(source, this.#inspector.moduleBytes);
    // guard: identify
    assertIntegrity(name, { approved, atHand: identified.integrity });
    return { identified, key: `${name} ${identified.integrity}` };
  }

  #begin(key: string, source: ModuleSource, identified: ModuleCode): Promise<Module> {
    const module = this.#describe(source, identified);
    this.#modules.set(key, module);
    module.then(
      (loaded) => this.#loaded.set(key, loaded),
      // A failure is not remembered, so the next call tries again.
      () => this.#modules.delete(key),
    );
    return module;
  }

  async #describe(source: ModuleSource, identified: ModuleCode): Promise<Module> {
    const { name } = source;
    const done = (meta: ModuleMeta): Module => ({
      ...identified,
      name,
      file: source.kind === "file" && !/\.code$/.test(source.path)
        ? basename(source.path)
        : undefined,
      meta,
      definitions: meta.tools.map(({ definition }) => definition),
    });
    if (source.kind === "builtin") return done(parseModuleMeta(source.meta, name));
    const file = join(this.#home, "meta", `${identified.integrity.slice(7)}.json`);
    const cache = readCache(file);
    if (cache !== undefined) return done(parseModuleMeta(cache, source.path));
    const text = new TextDecoder().decode(identified.code);
    const unread = await findImport(text, source.path).then(
      (match) => refuseImports(match, source.path),
      (error: Error) => error,
    );
    // For a text that the lexer cannot read, the error of Deno is better.
    const inspection = await this.#inspector.inspect({
      name,
      file: source.path,
      code: identified.code,
    });
    if (unread !== undefined) throw unread;
    const value = inspection.meta ?? metaComment(text, source.path);
    const meta = parseModuleMeta(value, source.path);
    refuseMissing(meta, { exports: inspection.exports, path: source.path });
    try {
      // A draft is loaded only once.
      if (source.draft === undefined) writeCache(file, value);
    } catch {
      // The disk may be full. The next process reads the metadata again.
    }
    return done(meta);
  }
}

function refuseImports(match: Awaited<ReturnType<typeof findImport>>, path: string): void {
  if (match === undefined) return;
  const why = `it imports ${quoted(match.specifier)}, but a module is one file`;
  throw unloadable(shownPlace(path, match), why, {
    code: "SANDBOX_DENIED",
    hint: BUNDLE,
  });
}

function refuseMissing(
  meta: ModuleMeta,
  from: { readonly exports: readonly string[]; readonly path: string },
): void {
  const missing = meta.tools.find((tool) => !from.exports.includes(tool.definition.name));
  if (missing === undefined) return;
  const { why, hint } = unexported(missing.definition.name);
  throw unloadable(from.path, why, { hint });
}

/**
 * Throws if the code asks for more than its registry listed, because the user was shown that list.
 */
function assertPromised({ name, tools }: ModuleMeta, promised: Permissions): void {
  for (const { definition, permissions } of tools) {
    // it has all of its names
    for (const kind of Object.keys(NO_PERMISSIONS) as (keyof Permissions)[]) {
      const more = permissions[kind].find((item) => !promised[kind].includes(item));
      if (more === undefined) continue;
      const tool = quoted(`${name}:${definition.name}`);
      const message = `Cannot run ${tool}: its code asks for ${kind} ${quoted(more)}, and its ` +
        "registry does not say so";
      throw new PmlError("REGISTRY_BAD_RESPONSE", message, {
        hint: "Nothing of it ran; tell the registry's owner",
      });
    }
  }
}
