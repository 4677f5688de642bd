/**
 * Builds the Deno command that runs an npm server with permissions, instead of node with the user's
 * rights.
 *
 * @module
 */

import { dirname, join, resolve } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { infoAt, isInside, namesInFolder } from "../../io/place.ts";
import { type Access, accessOf, type ServerGrants } from "../../policy/grants.ts";
import type { Covers } from "../../sandbox/confined_program.ts";
import { netFlags, pathFlag } from "../../sandbox/net_flags.ts";
import { dataFolder } from "./data_folder.ts";

/** The access of a confined server. */
export interface Confinement {
  readonly name: string;
  /** The folder of its package, which it may read. */
  readonly folder: string;
  readonly workspace: string;
  /** The PML home. */
  readonly home: string;
  readonly grants: ServerGrants | undefined;
  /** The user's certificates. The server may always read them. */
  readonly certificates: readonly string[];
  /**
   * Whether Landlock or bubblewrap confines it, too. Without them Deno alone cannot keep a path
   * closed when a folder above it is moved, so the server cannot write in the workspace.
   */
  readonly isHeld: boolean;
  /** Names in the workspace that it may not write, and names that it may not read. */
  readonly protection: {
    readonly writeProtected: readonly string[];
    readonly readProtected: readonly string[];
    /** Names that begin with a dot and can be written at the top of a workspace. */
    readonly writable?: readonly string[];
    /** Files that it may not write, wherever they lie. */
    readonly paths?: readonly string[];
  };
}

/**
 * A server, unlike a module, declares no permissions. It gets the workspace and the user's grants.
 */
const ALL = { read: ["."], write: ["."], net: ["*"], run: ["*"], env: [] };

/**
 * Returns the access of a confined server, without the folder of its package. Throws
 * `SANDBOX_DENIED` if a write grant contains the workspace or another grant: a server that can move a
 * folder can move the closed paths in it, too.
 */
export function confinedAccess(
  { certificates, isHeld, ...where }: Omit<Confinement, "folder" | "protection">,
): Access {
  const { name, workspace, grants } = where;
  const access = accessOf(ALL, where);
  const data = dataFolder(where);
  const read = [...access.read, data, ...certificates];
  const write = [...access.write, data];
  const wide = write.find((path) => containedIn(path, { workspace, others: [...read, ...write] }));
  if (wide !== undefined) {
    const others = [...read, ...write];
    const inner = containedIn(wide, { workspace, others });
    const what = `the write grant ${quoted(wide, 300)} contains ${quoted(inner ?? "", 300)}`;
    throw new PmlError("SANDBOX_DENIED", `Cannot confine ${quoted(name)}: ${what}`, {
      hint: "Grant a folder that contains neither the workspace nor another grant",
    });
  }
  const isGranted = grants?.write?.some((path) => resolve(workspace, path) === workspace) === true;
  const isOpen = isHeld || isGranted;
  return { ...access, read, write: isOpen ? write : write.filter((path) => path !== workspace) };
}

/** Returns a path that lies below a write grant. Below the workspace there may be any. */
export function containedIn(
  path: string,
  { workspace, others }: { readonly workspace: string; readonly others: readonly string[] },
): string | undefined {
  if (isInside(workspace, path)) return undefined;
  return [workspace, ...others].find((other) => other !== path && isInside(path, other));
}

/** The paths in the workspace that are closed to a confined server, and the folders above them. */
export interface ClosedPaths {
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Folders above closed files of the workspace. They must not be moved. */
  readonly above: readonly string[];
}

/** Returns the paths that stay closed with any grants. */
export function closedPaths(
  { workspace, protection, grants }: Pick<Confinement, "workspace" | "protection" | "grants">,
): ClosedPaths {
  const { readProtected, writeProtected, paths = [] } = protection;
  const granted = (grants?.write ?? []).map((path) => resolve(workspace, path));
  const dotted = dotNames(workspace, protection.writable).map((name) => join(workspace, name))
    .filter((path) => !granted.includes(path));
  const inside = (names: readonly string[]) =>
    names.flatMap((one) => [one.replaceAll("*", ""), ...matching(one, workspace)])
      .filter(Boolean).map((one) => join(workspace, one));
  const names = [...readProtected, ...writeProtected];
  // The first folder of a name of several parts is closed as a whole. Otherwise it could be built
  // elsewhere and moved to its place.
  const first = names.filter((name) => name.includes("/")).map((name) => name.split("/")[0] ?? "");
  const own = paths.filter((path) => isInside(workspace, path) && path !== workspace);
  return {
    read: inside(readProtected),
    write: [
      ...new Set([...inside([...first, ...names]), ...paths, ...own.map(firstMissing), ...dotted]),
    ],
    above: [...new Set(own.flatMap((path) => foldersAbove(path, workspace)))],
  };
}

/**
 * Returns the present names at the top of the workspace that begin with a dot and are not listed as
 * writable. Deno and bubblewrap cannot close names by a pattern.
 */
function dotNames(workspace: string, writable: readonly string[] = []): readonly string[] {
  const open = writable.map(starred);
  return namesInFolder(workspace).filter((name) =>
    name.startsWith(".") && !open.some((one) => one.test(name))
  );
}

/** Returns the outermost part of a path that does not exist, or the path itself. */
function firstMissing(path: string): string {
  let at = path;
  while (dirname(at) !== at && infoAt(dirname(at)) === undefined) at = dirname(at);
  return at;
}

/** Returns the folders between the workspace and a path in it. */
function foldersAbove(path: string, workspace: string): readonly string[] {
  const folder = dirname(path);
  return folder === workspace ? [] : [folder, ...foldersAbove(folder, workspace)];
}

/**
 * Returns the paths that bubblewrap mounts over. If programs are granted, nothing is hidden, because
 * they may need to read it.
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
 * Returns paths with the names that Windows has for the same content. Deno takes these for other
 * files. Only present files get them: a command line of Windows has 32,767 characters at most.
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

/** Returns the pattern of a name in which a star matches any characters. */
export function starred(name: string): RegExp {
  return new RegExp(`^${name.split("*").map(RegExp.escape).join(".*")}$`, "i");
}

/**
 * Returns the present entries of the workspace that a name with a star matches. Deeper folders are
 * not searched.
 */
function matching(name: string, workspace: string): readonly string[] {
  if (!name.includes("*")) return [];
  const like = starred(name);
  return namesInFolder(workspace).filter((one) => like.test(one));
}
