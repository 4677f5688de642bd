/**
 * Finds static imports in a module's text without running it.
 *
 * @module
 */

import { unloadable } from "./module_files.ts";

/** A static import or re-export: what it names and the line it stands in. */
export interface ImportFound {
  readonly specifier: string;
  readonly line: number;
}

/** The kinds of the lexer that load another file when the module is loaded; types are erased. */
const LOADING = new Set(["static", "reexport", "reexport-star", "side-effect", "source", "defer"]);

/** Finds the first static import or re-export, if there is one; throws where it cannot tell. */
export async function findImport(text: string, path: string): Promise<ImportFound | undefined> {
  const { init, parse } = await import("es-module-lexer");
  await init;
  const [imports] = readable(() => parse(text), { text, path });
  const found = imports.find((one) => isLoading(one));
  if (found === undefined) return undefined;
  return { specifier: found.specifier ?? "?", line: lineAt(text, found.importStart) };
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

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

function isLoading(one: { readonly type: string; readonly typeOnly?: boolean }): boolean {
  return (LOADING.has(one.type) || one.type.startsWith("reexport")) && one.typeOnly !== true;
}
