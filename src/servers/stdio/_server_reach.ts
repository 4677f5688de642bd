/**
 * Decides which paths the layer of the operating system (Landlock or bubblewrap) allows to a
 * confined server and to the programs that it may run. Deno's permissions allow the server less,
 * because they also close names in the workspace.
 *
 * @module
 */

import { dirname } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { infoAt, isInside } from "../../io/path_info.ts";
import { type Reach, systemPaths } from "../../sandbox/confined_program.ts";
import { confinedAccess, type Confinement } from "./_confined_access.ts";
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
 * Returns the paths for a confined server. Throws `SANDBOX_DENIED` if programs are granted and a
 * granted path to write does not exist. For such a path the layer would have to allow the nearest
 * existing folder. Deno closes the rest of that folder to the server, but not to programs.
 */
export function serverReach(
  confinement: Confinement,
  { userHome, path, pmlPaths: own }: {
    readonly userHome: string;
    /** The PATH on which granted programs are found. */
    readonly path: string | undefined;
    /** Files and folders in the PML home that Deno writes when it runs the server. */
    readonly pmlPaths: readonly string[];
  },
): Reach {
  const { folder, workspace, certificates } = confinement;
  const { read, write, run } = confinedAccess(confinement);
  const outside = (paths: readonly string[]) => paths.filter((path) => !isInside(workspace, path));
  // A granted program reads the system's files, as an install script does.
  const programs = run.length === 0
    ? []
    : scriptReach({ ...confinement, userHome, certificates }, { path, write: [] }).read;
  const granted = outside(write);
  const exists = (path: string) => nearestExisting(path) === path;
  const missing = granted.filter((path) => !exists(path));
  const [absent] = missing;
  if (run.length > 0 && confinement.hasSystemLayer && absent !== undefined) {
    throw missingPathError(confinement.name, absent);
  }
  const readable = outside(read);
  return {
    read: [
      ...[
        folder,
        Deno.execPath(),
        workspace,
        ...(run.length > 0 ? readable.filter(exists) : readable.map(nearestExisting)),
      ],
      ...[...systemPaths(true), ...SYSTEM, ...programs],
    ],
    write: [...own, ...granted.filter(exists)],
    fixed: [...write.includes(workspace) ? [workspace] : [], ...missing.map(nearestExisting)],
  };
}

function missingPathError(name: string, path: string): PmlError {
  const why = `it may run programs, and the path ${quoted(path, 300)} that it may write is missing`;
  return new PmlError("SANDBOX_DENIED", `Cannot confine ${quoted(name)}: ${why}`, {
    hint: "Create it, as a file or a folder",
  });
}

/**
 * Returns a path, or for a missing path the nearest folder above it that exists, because the layer
 * can only allow existing paths. Deno's permissions still contain only the path itself.
 */
function nearestExisting(path: string): string {
  return infoAt(path) === undefined && dirname(path) !== path
    ? nearestExisting(dirname(path))
    : path;
}
