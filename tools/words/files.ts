/**
 * Finds the files in which `deno task words` counts phrases.
 *
 * @module
 */

const ROOT = new URL("../../", import.meta.url);
const SKIPPED = new Set(["node_modules", ".git", "dist", "fixtures", "pictures"]);

/** Yields the code and the pages of the project. Paths are relative to the root. */
export async function* walkFiles(
  folder = "",
): AsyncGenerator<{ readonly path: string; readonly text: string }> {
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder || ".", ROOT))) {
    const path = `${folder}${name}`;
    if (isDirectory) {
      if (!SKIPPED.has(name)) yield* walkFiles(`${path}/`);
    } else if (/\.(?:ts|md)$/.test(name) && name !== "CHANGELOG.md") {
      yield { path, text: await Deno.readTextFile(new URL(path, ROOT)) };
    }
  }
}
