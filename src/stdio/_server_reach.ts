/**
 * Decides which paths the system's layer leaves to a confined server and to the programs that it may
 * run. Deno's permissions are narrower: they also close names in the workspace.
 *
 * @module
 */

import { dirname } from "node:path";
import { infoAt, isInside } from "../io/place.ts";
import { type Reach, systemPaths } from "../sandbox/confined_program.ts";
import { confinedAccess, type Confinement } from "./_confined.ts";
import { scriptReach } from "./_script_reach.ts";

/** What Deno and the libraries of servers read of the system. */
const SYSTEM = [
  "/proc/self",
  "/etc/passwd",
  "/etc/group",
  "/etc/os-release",
  "/usr/lib/os-release",
];

/** The options of a reach. */
export interface ServerReachOptions {
  readonly userHome: string;
  /** The PATH on which granted programs are found. */
  readonly path: string | undefined;
  /** Files and folders of PML that Deno writes for the server. */
  readonly own: readonly string[];
}

/** Returns what a confined server may read and write. */
export function serverReach(
  confinement: Confinement,
  { userHome, path, own }: ServerReachOptions,
): Reach {
  const { folder, workspace, certificates } = confinement;
  const { read, write, run } = confinedAccess(confinement);
  const outside = (paths: readonly string[]) => paths.filter((one) => !isInside(workspace, one));
  // A granted program reads the system's files, as an install script does.
  const programs = run.length === 0
    ? []
    : scriptReach({ ...confinement, userHome, certificates }, { path, write: [] }).read;
  const granted = outside(write);
  const isPresent = (path: string) => nearest(path) === path;
  const missing = granted.filter((path) => !isPresent(path)).map(nearest);
  return {
    read: [
      ...[folder, Deno.execPath(), workspace, ...outside(read).map(nearest)],
      ...[...systemPaths(true), ...SYSTEM, ...programs],
    ],
    write: [...own, ...granted.filter(isPresent)],
    fixed: [...write.includes(workspace) ? [workspace] : [], ...missing],
  };
}

/**
 * Returns the nearest folder that exists, for a granted path that does not exist yet: the layer can
 * only name what exists. Deno's permissions name the path itself.
 */
function nearest(path: string): string {
  return infoAt(path) === undefined && dirname(path) !== path ? nearest(dirname(path)) : path;
}
