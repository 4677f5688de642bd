/**
 * Finds static imports in a module's text without running it.
 *
 * @module
 */

import { placeAt } from "../../core/errors.ts";
import { unloadableError } from "./module_files.ts";

/** An import or re-export, and its position. */
export interface FoundImport {
  readonly specifier: string;
  readonly line: number;
  readonly column: number;
}

/** The imports of a module. */
export interface Imports {
  /** Static imports and re-exports, which load with the module. */
  readonly loading: readonly FoundImport[];
  /** Calls of `import()`, which load later. */
  readonly dynamic: readonly FoundImport[];
  /** The specifiers of type imports, which load nothing. */
  readonly types: readonly string[];
}

/** The hint for a module that imports files that the sandbox does not load. */
export const BUNDLE_HINT = "Bundle it: `deno bundle -o OUT.js FILE`, " +
  "or use Deno's functions and `host`";
/** The maximum number of reported imports of a kind: finding the line of each takes time. */
const REPORTED_MAX = 20;

/** The kinds of imports that load another file with the module, if they are not type imports. */
const LOADING = new Set(["static", "reexport", "reexport-star", "side-effect", "source", "defer"]);

/**
 * Returns the first static import or re-export, if there is one. Throws if the text cannot be
 * parsed.
 */
export async function findImport(text: string, path: string): Promise<FoundImport | undefined> {
  return (await findImports(text, path)).loading[0];
}

/** Returns the first imports and re-exports of each kind. Throws if the text cannot be parsed. */
export async function findImports(text: string, path: string): Promise<Imports> {
  const { init, parse } = await import("es-module-lexer");
  await init;
  const [all] = parseOrThrow(() => parse(text), path);
  const firstOf = (is: (one: typeof all[number]) => boolean): readonly FoundImport[] =>
    all.filter(is).slice(0, REPORTED_MAX).map((one) => ({
      specifier: one.specifier ?? "?",
      ...placeAt(text, one.importStart),
    }));
  return {
    loading: firstOf(isLoading),
    dynamic: firstOf((one) => one.type === "dynamic" && !one.probablyTypeOnly),
    types: all.filter((one) => "typeOnly" in one && one.typeOnly).map((one) => one.specifier ?? ""),
  };
}

function parseOrThrow<T>(parse: () => T, path: string): T {
  try {
    return parse();
  } catch (cause) {
    throw unloadableError(path, "its imports cannot be read", { cause, hint: BUNDLE_HINT });
  }
}

function isLoading(one: { readonly type: string; readonly typeOnly?: boolean }): boolean {
  return (LOADING.has(one.type) || one.type.startsWith("reexport")) && one.typeOnly !== true;
}
