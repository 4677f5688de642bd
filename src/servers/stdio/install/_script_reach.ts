/**
 * Decides which paths install scripts can use: the programs of the system, the installation of
 * their package, and a folder that is removed afterwards.
 *
 * @module
 */

import { delimiter, dirname, join } from "node:path";
import { isInside, realPathIfAny } from "../../../io/path_info.ts";
import type { Layer, Reach } from "../../../sandbox/confined_program.ts";
import { findProgram } from "../../../sandbox/search_path.ts";

/** How scripts are confined. */
export interface ScriptConfinement {
  readonly layer: Layer;
  /** The PML home. Scripts can read only their package there. */
  readonly home: string;
  readonly workspace: string;
  readonly userHome: string;
  /** The user's certificates, which scripts may read. */
  readonly certificates: readonly string[];
}

const SYSTEM = [
  ...["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/etc"],
  ...["/nix", "/gnu", "/snap"],
  // The files for resolving names.
  ...["/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/nscd"],
];
/**
 * Programs that build native modules. Each may be in a separate folder in the user's home folder,
 * so PML searches for them.
 */
const TOOLS = ["node", "npm", "python3", "python"];

/**
 * Returns the paths that scripts may read and write. `path` is the PATH on which their programs are
 * found; `more` are further paths to read.
 */
export function scriptReach(
  { home, workspace, userHome, certificates }: Omit<ScriptConfinement, "layer">,
  { path, write, more = [] }: {
    readonly path: string | undefined;
    readonly write: readonly string[];
    readonly more?: readonly string[];
  },
): Reach {
  const closed = [home, workspace, userHome].map((one) => realPathIfAny(one) ?? one);
  const folders = (path ?? "").split(delimiter);
  const programs = TOOLS.flatMap((tool) => findProgram(tool, { path: folders, workspace }) ?? []);
  const tools = programs.flatMap((file) => [file, realPathIfAny(file) ?? file])
    .map((file) => dirname(dirname(file)))
    .filter((folder) => folder !== join(userHome, ".local"));
  const open = [...folders, ...tools, ...more].filter((one) =>
    !closed.some((each) => isInside(one, each))
  );
  const system = SYSTEM.flatMap((root) => openParts(closed, root));
  return { read: [...new Set([...system, ...open, ...certificates])], write };
}

/** Returns a folder, or the parts of it that contain no closed path. */
function openParts(closed: readonly string[], folder: string): readonly string[] {
  if (!closed.some((path) => isInside(folder, path))) return [folder];
  if (closed.includes(folder)) return [];
  return [...Deno.readDirSync(folder)].filter(({ isSymlink }) => !isSymlink)
    .flatMap(({ name }) => openParts(closed, join(folder, name)));
}
