/**
 * Finds static imports in a module's text without running it.
 *
 * @module
 */

import { unloadable } from "./module_files.ts";

/** An import or re-export: what it names and the line it stands in. */
export interface ImportFound {
  readonly specifier: string;
  readonly line: number;
}

/** The imports of a module, by when they load a file: with the module, later, or never. */
export interface Imports {
  readonly loading: readonly ImportFound[];
  readonly dynamic: readonly ImportFound[];
  /** What types are imported from. */
  readonly types: readonly string[];
}

/** Counting lines takes time, and nobody reads more. */
const MOST = 20;

/** The kinds of the lexer that load another file when the module is loaded; types are erased. */
const LOADING = new Set(["static", "reexport", "reexport-star", "side-effect", "source", "defer"]);

/** Finds the first static import or re-export, if there is one; throws where it cannot tell. */
export async function findImport(text: string, path: string): Promise<ImportFound | undefined> {
  return (await findImports(text, path)).loading[0];
}

/** Finds the first imports and re-exports of each kind; throws where it cannot tell. */
export async function findImports(text: string, path: string): Promise<Imports> {
  const { init, parse } = await import("es-module-lexer");
  await init;
  const [all] = readable(() => parse(text), { text, path });
  const those = (is: (one: typeof all[number]) => boolean): readonly ImportFound[] =>
    all.filter(is).slice(0, MOST).map((one) => ({
      specifier: one.specifier ?? "?",
      line: lineAt(text, one.importStart),
    }));
  return {
    loading: those(isLoading),
    dynamic: those((one) => one.type === "dynamic" && !one.probablyTypeOnly),
    types: all.filter((one) => "typeOnly" in one && one.typeOnly).map((one) => one.specifier ?? ""),
  };
}

function readable<T>(
  parse: () => T,
  { text, path }: { readonly text: string; readonly path: string },
): T {
  try {
    return parse();
  } catch (cause) {
    const at = cause instanceof Error && "idx" in cause ? Number(cause.idx) : 0;
    // Zero is where something began that never ends.
    const where = at > 0 ? `line ${lineAt(text, at)}` : "it";
    throw unloadable(path, `${where} is no TypeScript`, { cause, hint: "Mend its syntax" });
  }
}

/** Gives the line, from 1, that a place in a text stands in. */
export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

function isLoading(one: { readonly type: string; readonly typeOnly?: boolean }): boolean {
  return (LOADING.has(one.type) || one.type.startsWith("reexport")) && one.typeOnly !== true;
}
