/**
 * Writes the types that `pml check` provides to modules (of `host` and of results) to one file that
 * ships, without comments and unnecessary spaces. Run it after a change of one of the sources.
 *
 * @module
 */

const ROOT = new URL("../", import.meta.url);

/** The file that ships. */
export const OUTPUT: URL = new URL("config/module-types.d.ts", ROOT);

/** The files with the types, and the names of the types; an empty list means all. */
const SOURCES: Readonly<Record<string, readonly string[]>> = {
  "src/sandbox/host.ts": [],
  "src/protocol/call.ts": ["ContentBlock", "ToolResult", "Progress"],
  "src/core/json.ts": ["Json", "JsonObject"],
  "src/protocol/tool.ts": ["Permissions", "Meta", "ToolMeta"],
};

/** Returns the text of the file. */
export async function moduleTypes(): Promise<string> {
  const parts = Object.entries(SOURCES).map(async ([source, names]) => {
    const text = await Deno.readTextFile(new URL(source, ROOT));
    const plain = text.replace(/\/\*\*[\s\S]*?\*\/\s*/g, "").replace(/\n{2,}/g, "\n");
    return plain.split(/^(?=[a-z])/m)
      .filter((part) => /^export (?:interface|type) /.test(part))
      .filter((part) =>
        names.length === 0 || names.includes(/^export \w+ (\w+)/.exec(part)?.[1] ?? "")
      );
  });
  const text = (await Promise.all(parts)).flat().join("");
  // One type per line. Removes `readonly` except from lists: a module may change its arguments, which
  // are copies, and may return readonly lists.
  return text.replace(/\s*([:;{}=|?,<>()[\]])\s*/g, "$1").replace(/[;,](?=[})])/g, "")
    .replace(/readonly (?=\w+\??:)|readonly(?=\[\w+:\w+\]:)/g, "")
    .replace(/Readonly<(Record<[^<>]*>)>/g, "$1")
    .replace(/(?<=[};])export /g, "\nexport ");
}

if (import.meta.main) await Deno.writeTextFile(OUTPUT, await moduleTypes());
