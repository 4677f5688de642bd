/**
 * What install scripts reach: the system's programs, their package, and a folder that goes with them.
 *
 * @module
 */

import { delimiter, dirname, join } from "node:path";
import { isInside, realPathIfAny } from "../io/place.ts";
import type { Layer, Reach } from "../sandbox/confined_program.ts";
import { findProgram } from "../sandbox/search_path.ts";

/** What scripts are confined by. */
export interface Confining {
  readonly layer: Layer;
  /** The PML home; scripts read nothing there but their package. */
  readonly home: string;
  readonly workspace: string;
  readonly userHome: string;
  /** The person's certificates, which they may read. */
  readonly certificates: readonly string[];
}

const SYSTEM = [
  ...["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/etc"],
  ...["/nix", "/gnu", "/snap"],
  // What names are resolved with.
  ...["/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/nscd"],
];
/** What compiles native modules may lie in the person's folder, each in one of its own. */
const TOOLS = ["node", "npm", "python3", "python"];

/** Gives what scripts may read and write, where their programs are found on this PATH. */
export function scriptReach(
  { home, workspace, userHome, certificates }: Omit<Confining, "layer">,
  { path, write, more = [] }: {
    readonly path: string | undefined;
    readonly write: readonly string[];
    readonly more?: readonly string[];
  },
): Reach {
  const closed = [home, workspace, userHome].map((one) => realPathIfAny(one) ?? one);
  const folders = (path ?? "").split(delimiter);
  const found = TOOLS.flatMap((tool) => findProgram(tool, { path: folders, workspace }) ?? []);
  const tools = found.flatMap((file) => [file, realPathIfAny(file) ?? file])
    .map((file) => dirname(dirname(file)))
    .filter((folder) => folder !== join(userHome, ".local"));
  const open = [...folders, ...tools, ...more].filter((one) =>
    !closed.some((each) => isInside(one, each))
  );
  const system = SYSTEM.flatMap((root) => without(closed, root));
  return { read: [...new Set([...system, ...open, ...certificates])], write };
}

/** Gives a folder, or what is in it where something closed lies there. */
function without(closed: readonly string[], folder: string): readonly string[] {
  if (!closed.some((one) => isInside(folder, one))) return [folder];
  if (closed.includes(folder)) return [];
  return [...Deno.readDirSync(folder)].filter(({ isSymlink }) => !isSymlink)
    .flatMap(({ name }) => without(closed, join(folder, name)));
}
