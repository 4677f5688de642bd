/**
 * Loads modules: reads and hashes their bytes without running them, and reads their metadata once
 * per hash, in a child without grants.
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
import { readCache, writeCache } from "../../io/cache_files.ts";
import type { ServerGrants } from "../../policy/grants.ts";
import { assertIntegrity } from "../../policy/integrity.ts";
import { BUNDLE_HINT, findImport } from "./imports.ts";
import { metaComment, unexportedTool } from "./meta_comment.ts";
import { type ModuleCode, type ModuleSource, unloadableError } from "./module_files.ts";
import type { ModuleReader } from "./module_files.ts";

/** A module with its metadata. */
export interface Module extends ModuleCode {
  readonly name: string;
  readonly meta: ModuleMeta;
  /** The name of the module's file, for positions in errors; undefined for code of a registry. */
  readonly file?: string | undefined;
  /** The definitions of the module's tools: the same array until the code changes. */
  readonly definitions: readonly ToolDefinition[];
}

/** The report of a child without grants about a module. */
export interface Inspection {
  readonly meta: unknown;
  readonly exports: readonly string[];
}

/** A module, the hash that its code must have, and its grants. */
export interface ModuleUse {
  readonly source: ModuleSource;
  /**
   * The hash that the code must have: that of the approved code, or of code that is only inspected;
   * undefined if PML ships the code.
   */
  readonly expectedHash: string | undefined;
  /** All permissions that the module's tools may request, if a registry listed them. */
  readonly listedPermissions?: Permissions | undefined;
  /** The user's grants beyond the workspace. */
  readonly grants: ServerGrants | undefined;
}

/** Runs modules without any grant, to read their metadata. */
export interface ModuleInspector {
  /** The current maximum size of a module, in bytes. */
  readonly moduleBytes: number;
  /** Returns the metadata and the exports of a module. */
  inspect(module: NamedModule): Promise<Inspection>;
}

/** The code of a module, and its name in messages. */
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
  /** The modules whose promises have resolved. */
  readonly #loaded = new Map<string, Module>();

  /** Creates a loader that stores metadata in the PML home, by hash. */
  constructor(home: string, files: ModuleReader, inspector: ModuleInspector) {
    this.#home = home;
    this.#files = files;
    this.#inspector = inspector;
  }

  /**
   * Loads a module with its metadata. Throws `INTEGRITY_MISMATCH` if the hash of its bytes is not
   * the expected hash. Exactly the hashed bytes run: the file is not read again.
   */
  async load(use: ModuleUse): Promise<Module> {
    const { source, listedPermissions } = use;
    const { key, identified } = this.#identify(use);
    const module = await (this.#modules.get(key) ?? this.#begin(key, source, identified));
    // guard: promised
    if (listedPermissions !== undefined) assertListed(module.meta, listedPermissions);
    return module;
  }

  /** Returns a module whose expected code was loaded before, otherwise undefined. */
  cachedModule(use: ModuleUse): Module | undefined {
    try {
      return this.#loaded.get(this.#identify(use).key);
    } catch {
      return undefined; // `load()` reports the reason
    }
  }

  /**
   * Returns the metadata of code that was loaded before, also by another process; undefined if PML
   * no longer has the metadata. `path` is the path of the module.
   */
  cachedMeta(integrity: string, path: string): ModuleMeta | undefined {
    const cache = readCache(this.#metaFile(integrity));
    return cache === undefined ? undefined : parseModuleMeta(cache, path);
  }

  #metaFile(integrity: string): string {
    return join(this.#home, "meta", `${integrity.slice("sha256-".length)}.json`);
  }

  #identify({ source, expectedHash }: ModuleUse) {
    const { name } = source;
    const draft = source.kind === "file" ? source.draft : undefined;
    const identified = draft ?? this.#files.identify(source, this.#inspector.moduleBytes);
    // guard: identify
    assertIntegrity(name, { approved: expectedHash, actual: identified.integrity });
    return { identified, key: `${name} ${identified.integrity}` };
  }

  #begin(key: string, source: ModuleSource, identified: ModuleCode): Promise<Module> {
    const module = this.#describe(source, identified);
    this.#modules.set(key, module);
    module.then(
      (loaded) => this.#loaded.set(key, loaded),
      // Failures are not cached, so the next call tries again.
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
    const cachedMeta = this.cachedMeta(identified.integrity, source.path);
    if (cachedMeta !== undefined) return done(cachedMeta);
    const text = new TextDecoder().decode(identified.code);
    const importError = await findImport(text, source.path).then(
      (match) => refuseImports(match, source.path),
      (error: Error) => error,
    );
    // Runs the module before it throws this error: if the lexer cannot read the text, Deno's error
    // is more useful.
    const inspection = await this.#inspector.inspect({
      name,
      file: source.path,
      code: identified.code,
    });
    if (importError !== undefined) throw importError;
    const value = inspection.meta ?? metaComment(text, source.path);
    const meta = parseModuleMeta(value, source.path);
    refuseMissing(meta, { exports: inspection.exports, path: source.path });
    try {
      // A draft is loaded only once.
      if (source.draft === undefined) writeCache(this.#metaFile(identified.integrity), value);
    } catch {
      // The file is only a cache: without it, the next process reads the metadata again.
    }
    return done(meta);
  }
}

function refuseImports(match: Awaited<ReturnType<typeof findImport>>, path: string): void {
  if (match === undefined) return;
  const why = `it imports ${quoted(match.specifier)}, but a module is one file`;
  throw unloadableError(shownPlace(path, match), why, {
    code: "SANDBOX_DENIED",
    hint: BUNDLE_HINT,
  });
}

function refuseMissing(
  meta: ModuleMeta,
  from: { readonly exports: readonly string[]; readonly path: string },
): void {
  const missing = meta.tools.find((tool) => !from.exports.includes(tool.definition.name));
  if (missing === undefined) return;
  const { why, hint } = unexportedTool(missing.definition.name);
  throw unloadableError(from.path, why, { hint });
}

/**
 * Throws if the code requests permissions that its registry did not list: the user saw only the
 * list.
 */
function assertListed({ name, tools }: ModuleMeta, listed: Permissions): void {
  for (const { definition, permissions } of tools) {
    // `NO_PERMISSIONS` has exactly the keys of `Permissions`.
    for (const kind of Object.keys(NO_PERMISSIONS) as (keyof Permissions)[]) {
      const more = permissions[kind].find((item) => !listed[kind].includes(item));
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
