/**
 * Finds variables of PML that a client's configuration inside the workspace sets: whoever wrote
 * the workspace would speak there for the person.
 *
 * @module
 */

import { join } from "node:path";
import { type Environment, ignoring } from "./env.ts";
import { foldersAbove, holds, realPathOf } from "./workspace.ts";

/** Files in which clients keep the environment of the servers that they start. */
const CLIENT_FILES = [
  ".mcp.json",
  "mcp.json",
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".cursor/mcp.json",
  ".vscode/mcp.json",
  ".vscode/settings.json",
  ".codex/config.toml",
  ".gemini/settings.json",
  ".windsurf/mcp.json",
  ".windsurf/mcp_config.json",
  ".roo/mcp.json",
  ".kilocode/mcp.json",
  ".kiro/settings/mcp.json",
  ".amazonq/mcp.json",
  ".junie/mcp/mcp.json",
  ".trae/mcp.json",
  ".qwen/settings.json",
  ".zed/settings.json",
  ".continue/config.yaml",
  ".continue/config.json",
  ".devcontainer/devcontainer.json",
  ".devcontainer.json",
  "opencode.json",
  "opencode.jsonc",
  ".env",
];

const NAMES = ["PML_HOME", "PML_TRUST", "PML_REGISTRIES"];
const MOST_BYTES = 1_000_000;

/** Gives the environment that counts: without what such a file may have set. */
export function withoutClientFiles(
  environment: Environment,
  from: { readonly cwd: string; readonly root: string },
): Environment {
  const set = NAMES.filter((name) => environment.get(name));
  if (set.length === 0) return environment;
  const home = realPathOf(environment.userHome);
  const above = [from.root, from.cwd].flatMap((folder) => [folder, ...foldersAbove(folder)]);
  // What stands in the home folder or above it is the person's own.
  const folders = new Set([from.root, ...above.filter((folder) => !holds(folder, home))]);
  const setBy = new Map<string, string>();
  for (const file of [...folders].flatMap(clientFiles)) {
    for (const name of set) if (!setBy.has(name) && mentions(file, name)) setBy.set(name, file);
  }
  return ignoring(environment, setBy);
}

/** Gives the files of a folder that may be a client's: one look at the folder, and not one a name. */
function clientFiles(folder: string): readonly string[] {
  const names = namesIn(folder);
  const known = CLIENT_FILES.filter((file) => names.has(file.split("/", 1)[0] ?? ""));
  const workspaces = [...names].filter((name) => name.endsWith(".code-workspace"));
  return [...known, ...workspaces].map((name) => join(folder, name));
}

function namesIn(folder: string): ReadonlySet<string> {
  try {
    return new Set([...Deno.readDirSync(folder)].map((entry) => entry.name));
  } catch {
    // A folder that cannot be listed may still be walked through.
    return new Set(CLIENT_FILES.map((file) => file.split("/", 1)[0] ?? ""));
  }
}

function mentions(file: string, name: string): boolean {
  try {
    const { isFile, size } = Deno.statSync(file);
    if (!isFile) return false;
    if (size > MOST_BYTES) return true;
    const text = unescaped(Deno.readTextFileSync(file));
    // A file of variables beside this one can have any name, so the key that names it is enough.
    return text.includes(name) || /\benv_?file\b/i.test(text);
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory);
  }
}

/** JSON, TOML and YAML can spell a letter of a name with an escape. */
function unescaped(text: string): string {
  const escapes = /\\[ux]0*([\da-f]{2})/gi;
  return text.replace(escapes, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
}
