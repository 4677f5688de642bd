/**
 * Finds static imports in a module's text without running it.
 *
 * @module
 */

import { placeAt } from "../../core/errors.ts";
import { unloadable } from "./module_files.ts";

/** An import or re-export: its specifier and its place. */
export interface ImportFound {
  readonly specifier: string;
  readonly line: number;
  readonly column: number;
}

/** The imports of a module: those that load with it, those that load later, and those of types. */
export interface Imports {
  readonly loading: readonly ImportFound[];
  readonly dynamic: readonly ImportFound[];
  /** The specifiers of type imports, which load nothing. */
  readonly types: readonly string[];
}

/** The hint for a module that imports files that the sandbox does not load. */
export const BUNDLE = "Bundle it: `deno bundle -o OUT.js FILE`, " +
  "or use Deno's functions and `host`";
/** The maximum number of imports that are reported: counting lines takes time. */
const MOST = 20;

/** The kinds of imports that load another file with the module. Type imports are erased. */
const LOADING = new Set(["static", "reexport", "reexport-star", "side-effect", "source", "defer"]);

/**
 * Returns the first static import or re-export, if there is one. Throws if the text cannot be
 * parsed.
 */
export async function findImport(text: string, path: string): Promise<ImportFound | undefined> {
  return (await findImports(text, path)).loading[0];
}

/** Returns the first imports and re-exports of each kind. Throws if the text cannot be parsed. */
export async function findImports(text: string, path: string): Promise<Imports> {
  const { init, parse } = await import("es-module-lexer");
  await init;
  const [all] = readable(() => parse(text), path);
  const those = (is: (one: typeof all[number]) => boolean): readonly ImportFound[] =>
    all.filter(is).slice(0, MOST).map((one) => ({
      specifier: one.specifier ?? "?",
      ...placeAt(text, one.importStart),
    }));
  return {
    loading: those(isLoading),
    dynamic: those((one) => one.type === "dynamic" && !one.probablyTypeOnly),
    types: all.filter((one) => "typeOnly" in one && one.typeOnly).map((one) => one.specifier ?? ""),
  };
}

function readable<T>(parse: () => T, path: string): T {
  try {
    return parse();
  } catch (cause) {
    throw unloadable(path, "its imports cannot be read", { cause, hint: BUNDLE });
  }
}

function isLoading(one: { readonly type: string; readonly typeOnly?: boolean }): boolean {
  return (LOADING.has(one.type) || one.type.startsWith("reexport")) && one.typeOnly !== true;
}
