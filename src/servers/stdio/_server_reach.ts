/**
 * Decides which paths the system's layer leaves to a confined server and to the programs that it may
 * run. Deno's permissions are narrower: they also close names in the workspace.
 *
 * @module
 */

import { dirname } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { infoAt, isInside } from "../../io/place.ts";
import { type Reach, systemPaths } from "../../sandbox/confined_program.ts";
import { confinedAccess, type Confinement } from "./_confined.ts";
import { scriptReach } from "./install/_script_reach.ts";

/** The files of the system that Deno and the libraries of servers read. */
const SYSTEM = [
  "/proc/self",
  "/etc/passwd",
  "/etc/group",
  "/etc/os-release",
  "/usr/lib/os-release",
];

/**
 * Returns the paths of a confined server. Throws `SANDBOX_DENIED` if programs are granted and a path
 * to write does not exist: a layer would have to open the folder around it, which Deno closes to the
 * server and not to programs.
 */
export function serverReach(
  confinement: Confinement,
  { userHome, path, own }: {
    readonly userHome: string;
    /** The PATH on which granted programs are found. */
    readonly path: string | undefined;
    /** Files and folders of PML that Deno writes for the server. */
    readonly own: readonly string[];
  },
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
  const missing = granted.filter((path) => !isPresent(path));
  const [absent] = missing;
  if (run.length > 0 && confinement.isHeld && absent !== undefined) {
    throw unopened(confinement.name, absent);
  }
  const readable = outside(read);
  return {
    read: [
      ...[
        folder,
        Deno.execPath(),
        workspace,
        ...(run.length > 0 ? readable.filter(isPresent) : readable.map(nearest)),
      ],
      ...[...systemPaths(true), ...SYSTEM, ...programs],
    ],
    write: [...own, ...granted.filter(isPresent)],
    fixed: [...write.includes(workspace) ? [workspace] : [], ...missing.map(nearest)],
  };
}

function unopened(name: string, path: string): PmlError {
  const why = `it may run programs, and the path ${quoted(path, 300)} that it may write is missing`;
  return new PmlError("SANDBOX_DENIED", `Cannot confine ${quoted(name)}: ${why}`, {
    hint: "Create it, as a file or a folder",
  });
}

/**
 * Returns the nearest folder that exists, for a granted path that does not exist yet: the layer can
 * only name paths that exist. Deno's permissions name the path itself.
 */
function nearest(path: string): string {
  return infoAt(path) === undefined && dirname(path) !== path ? nearest(dirname(path)) : path;
}
