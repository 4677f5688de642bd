/**
 * The public API about registries: names, hashes and module metadata, in the form that registries,
 * locks and the gateway share, and the parts of which a registry is made.
 *
 * @example
 * ```ts
 * import { integrityOf, parseFqdn } from "@casys/pml/registry";
 *
 * parseFqdn("fs:read_json@1.2.0"); // { name: "fs", action: "read_json", version: "1.2.0" }
 * integrityOf(new TextEncoder().encode("export const x = 1;")); // "sha256-…"
 * ```
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import type { Fqdn } from "../registry/fqdn.ts";
import { parseManifest } from "../registry/manifest.ts";
import type { Versions } from "../registry/registry.ts";

export { BUILTIN_NAMES } from "../modules/builtin_names.ts";
export { type Opening, type Reading, readRegular, type Regular } from "../io/regular_file.ts";
export * from "../registry/registry.ts";

/**
 * Returns why clients would refuse a manifest, or leave out one of its tools; nothing if they take
 * all of it. `named` are hosts of this machine, with their ports, that it may use without TLS.
 */
export function whyRefused(
  manifest: JsonObject,
  { asked, named }: { readonly asked: Fqdn; readonly named: ReadonlySet<string> },
): string | undefined {
  const left: string[] = [];
  const onLeftOut = (tool: string, why: string) => left.push(`the tool ${quoted(tool)}: ${why}`);
  try {
    parseManifest(manifest, { url: "", asked, named, onLeftOut });
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    return error.message.replace(/^Cannot use (?:the entry )?".*?"(?: of ".*?")?: /, "");
  }
  return left[0];
}

/** How to read a folder. */
export interface FolderReading {
  /** Is called for each file that is left out, with the reason. */
  readonly warn: (message: string) => void;
  /** Ends the reading. */
  readonly signal: AbortSignal;
}

/**
 * Reads a folder as `pml registry serve` does: modules and manifests, and their tags. The metadata
 * of a module is read in a sandbox child without grants.
 */
export async function readFolder(
  path: string,
  { warn, signal }: FolderReading,
): Promise<readonly Versions[]> {
  const { Folder } = await import("../registry/folder.ts");
  const { describeModule } = await import("../authoring/describing.ts");
  const { limitsOf } = await import("../config/limits.ts");
  const limits = limitsOf({});
  const home = await Deno.makeTempDir({ prefix: "pml-folder-" });
  try {
    const folder = new Folder({
      path: await Deno.realPath(path),
      maxBytes: limits.moduleBytes,
      describe: (file, code) =>
        describeModule(file, code, { home, limits, signal, workspace: path }),
      warn,
    });
    return await folder.all();
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}
