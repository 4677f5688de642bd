/**
 * Turns what a module asks for into what it gets: within the workspace, and what the person
 * granted beyond it.
 *
 * @module
 */

import { isAbsolute, relative, resolve } from "node:path";
import type { Permissions } from "../core/tool.ts";

/** Absolute folders and files that a sandbox child may read and write. */
export interface FileAccess {
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** What grants name: the only way to open a protected name. */
  readonly granted: readonly string[];
}

/** What the person granted to a server, as written in `.pml.json`. */
export type Grants = Partial<Permissions>;

/**
 * Gives the file access of a tool. What it asks for inside the workspace it gets; outside only
 * what a grant names. A read grant reaches tools that read at all, a write grant those that write.
 */
export function fileAccess(
  asked: Permissions,
  where: { readonly workspace: string; readonly grants: Grants | undefined },
): FileAccess {
  const { workspace, grants } = where;
  // What was granted within the workspace is shown as that: a link may not lead it out.
  const paths = (kind: "read" | "write") =>
    (grants?.[kind] ?? []).map((path) => resolve(workspace, path))
      .filter((path) => !isInside(path, workspace) || isInside(realPath(path), workspace))
      .map(realPath);
  const roots = (kind: "read" | "write") => {
    if (asked[kind].length === 0) return [];
    const inside = asked[kind].map((path) => resolve(workspace, path))
      .filter((path) => isInside(path, workspace));
    return [...new Set([...inside, ...paths(kind)])].sort();
  };
  const granted = [...new Set([...paths("read"), ...paths("write")])].sort();
  return { read: roots("read"), write: roots("write"), granted };
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way.split(/[\\/]/)[0] !== ".." && !isAbsolute(way));
}

function realPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    // A granted path that does not exist yet is granted as it is written.
    return path;
  }
}
