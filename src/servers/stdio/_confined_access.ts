/**
 * Builds the Deno command that runs an npm server with limited permissions. Under node it would
 * have all rights of the user.
 *
 * @module
 */

import { dirname, join, resolve } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { infoAt, isInside, namesInFolder } from "../../io/path_info.ts";
import { type Access, accessOf, type ServerGrants } from "../../policy/grants.ts";
import type { Covers } from "../../sandbox/confined_program.ts";
import { netFlags, pathFlag } from "../../sandbox/net_flags.ts";
import { dataFolder } from "./data_folder.ts";

/** The access of a confined server. */
export interface Confinement {
  readonly name: string;
  /** The folder of the server's package, which the server may read. */
  readonly folder: string;
  readonly workspace: string;
  /** The PML home. */
  readonly home: string;
  readonly grants: ServerGrants | undefined;
  /** The user's certificates. The server may always read them. */
  readonly certificates: readonly string[];
  /**
   * Whether Landlock or bubblewrap also confines the server. If not, the server cannot write in the
   * workspace unless a grant allows it: Deno alone cannot keep a path closed when a folder above
   * the path is moved.
   */
  readonly hasSystemLayer: boolean;
  /**
   * The names in the workspace that the server may not write, and the names that it may not read.
   */
  readonly protection: {
    readonly writeProtected: readonly string[];
    readonly readProtected: readonly string[];
    /** Names that begin with a dot and can be written at the top of a workspace. */
    readonly writable?: readonly string[];
    /** Files in any folder that the server may not write. */
    readonly paths?: readonly string[];
  };
}

/**
 * The permissions that a module would declare. A server declares none, so it gets all of them
 * within the workspace and the user's grants.
 */
const ALL_IN_WORKSPACE = { read: ["."], write: ["."], net: ["*"], run: ["*"], env: [] };

/**
 * Returns the access of a confined server, without the folder of its package. Throws
 * `SANDBOX_DENIED` if a write grant contains the workspace or another grant: in such a folder, a
 * server could move a closed path by moving a folder above the path.
 */
export function confinedAccess(
  { certificates, hasSystemLayer, ...where }: Omit<Confinement, "folder" | "protection">,
): Access {
  const { name, workspace, grants } = where;
  const access = accessOf(ALL_IN_WORKSPACE, where);
  const data = dataFolder(where);
  const read = [...access.read, data, ...certificates];
  const write = [...access.write, data];
  const containing = write.find((path) =>
    findInnerPath(path, { workspace, others: [...read, ...write] })
  );
  if (containing !== undefined) {
    const others = [...read, ...write];
    const inner = findInnerPath(containing, { workspace, others });
    const what = `the write grant ${quoted(containing, 300)} contains ${quoted(inner ?? "", 300)}`;
    throw new PmlError("SANDBOX_DENIED", `Cannot confine ${quoted(name)}: ${what}`, {
      hint: "Grant a folder that contains neither the workspace nor another grant",
    });
  }
  const isGranted = grants?.write?.some((path) => resolve(workspace, path) === workspace) === true;
  const canWriteWorkspace = hasSystemLayer || isGranted;
  const writable = canWriteWorkspace ? write : write.filter((path) => path !== workspace);
  return { ...access, read, write: writable };
}

/**
 * Returns a path inside the write grant `path`: the workspace, or one of `others`. Returns
 * undefined if there is none, or if the grant is inside the workspace.
 */
export function findInnerPath(
  path: string,
  { workspace, others }: { readonly workspace: string; readonly others: readonly string[] },
): string | undefined {
  if (isInside(workspace, path)) return undefined;
  return [workspace, ...others].find((other) => other !== path && isInside(path, other));
}

/** The paths that are closed to a confined server, and the folders above them in the workspace. */
export interface ClosedPaths {
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Folders above closed files of the workspace. They must not be moved. */
  readonly above: readonly string[];
}

/**
 * Returns the paths that stay closed although a grant contains them. Only a name that begins with a
 * dot is opened by a grant of exactly this name.
 */
export function closedPaths(
  { workspace, protection, grants }: Pick<Confinement, "workspace" | "protection" | "grants">,
): ClosedPaths {
  const { readProtected, writeProtected, paths = [] } = protection;
  const granted = (grants?.write ?? []).map((path) => resolve(workspace, path));
  const dotted = dotNames(workspace, protection.writable).map((name) => join(workspace, name))
    .filter((path) => !granted.includes(path));
  const inside = (names: readonly string[]) =>
    names.flatMap((one) => [one.replaceAll("*", ""), ...entriesMatching(one, workspace)])
      .filter(Boolean).map((one) => join(workspace, one));
  const names = [...readProtected, ...writeProtected];
  // If a name has several parts, such as `.git/config`, its first folder is closed as a whole.
  // Otherwise a server could create such a folder with the file elsewhere, and move it to this
  // path.
  const first = names.filter((name) => name.includes("/")).map((name) => name.split("/")[0] ?? "");
  const inWorkspace = paths.filter((path) => isInside(workspace, path) && path !== workspace);
  return {
    read: inside(readProtected),
    write: [
      ...new Set([
        ...inside([...first, ...names]),
        ...paths,
        ...inWorkspace.map(outermostMissing),
        ...dotted,
      ]),
    ],
    above: [...new Set(inWorkspace.flatMap((path) => foldersAbove(path, workspace)))],
  };
}

/**
 * Returns the existing names at the top of the workspace that begin with a dot and are not listed
 * as writable. They are listed one by one, because Deno and bubblewrap cannot close names by a
 * pattern.
 */
function dotNames(workspace: string, writable: readonly string[] = []): readonly string[] {
  const open = writable.map(starPattern);
  return namesInFolder(workspace).filter((name) =>
    name.startsWith(".") && !open.some((one) => one.test(name))
  );
}

/** Returns the outermost folder of a path that does not exist yet; otherwise the path itself. */
function outermostMissing(path: string): string {
  let part = path;
  while (dirname(part) !== part && infoAt(dirname(part)) === undefined) part = dirname(part);
  return part;
}

/** Returns the folders between the workspace and a path in it. */
function foldersAbove(path: string, workspace: string): readonly string[] {
  const folder = dirname(path);
  return folder === workspace ? [] : [folder, ...foldersAbove(folder, workspace)];
}

/**
 * Returns the paths of the workspace that bubblewrap makes read-only or hides. If programs are
 * granted, nothing is hidden, because the programs may need to read the paths.
 */
export function coversOf(confinement: Confinement): Covers {
  const { read, write, above } = closedPaths(confinement);
  const runs = confinedAccess(confinement).run.length > 0;
  const { workspace } = confinement;
  const inWorkspace = (path: string) => isInside(workspace, path) && path !== workspace;
  return {
    readOnly: write.filter(inWorkspace),
    hidden: runs ? [] : read.filter(inWorkspace),
    fixed: above,
  };
}

/** Returns the arguments of Deno that come before the file of the server. */
export function confinedArgs(confinement: Confinement): readonly string[] {
  const { name, folder } = confinement;
  const { read, write, net, run } = confinedAccess(confinement);
  const closed = closedPaths(confinement);
  const list = (flag: string, paths: readonly string[]) =>
    pathFlag(flag, paths, `Cannot confine ${quoted(name)} to`);
  return [
    ...["run", "--quiet", "--no-prompt", "--no-lock", "--no-remote", "--cached-only"],
    ...["--node-modules-dir=manual", "--allow-env", "--allow-sys"],
    ...list("allow-read", [folder, ...read]),
    ...list("allow-write", write),
    ...list("deny-read", withStreams(closed.read)),
    ...list("deny-write", withStreams(closed.write)),
    ...list("allow-run", run),
    ...netFlags(net),
  ];
}

/**
 * Returns the paths, and on Windows also the other names that Windows has for the same content.
 * Deno treats them as different files. Adds names for existing paths only, because a command line
 * of Windows has at most 32,767 characters.
 */
export function withStreams(
  paths: readonly string[],
  os: typeof Deno.build.os = Deno.build.os,
): readonly string[] {
  if (os !== "windows") return paths;
  return paths.flatMap((path) => {
    const info = infoAt(path);
    if (info === undefined) return [path];
    const streams = info.isDirectory
      ? ["::$INDEX_ALLOCATION", ":$I30:$INDEX_ALLOCATION"]
      : ["::$DATA"];
    return [path, ...streams.map((stream) => `${path}${stream}`)];
  });
}

/** Returns a pattern for a name in which `*` matches any characters. Ignores case. */
export function starPattern(name: string): RegExp {
  return new RegExp(`^${name.split("*").map(RegExp.escape).join(".*")}$`, "i");
}

/**
 * Returns the existing entries at the top of the workspace that a name with `*` matches. Does not
 * search deeper folders.
 */
function entriesMatching(name: string, workspace: string): readonly string[] {
  if (!name.includes("*")) return [];
  const pattern = starPattern(name);
  return namesInFolder(workspace).filter((one) => pattern.test(one));
}
