/**
 * Makes the Deno command that runs an npm server with permissions, instead of node with the
 * person's rights.
 *
 * @module
 */

import { join } from "node:path";
import { quoted } from "../core/json.ts";
import { namesOf } from "../io/place.ts";
import { type Access, accessOf, type Grants } from "../permissions/grants.ts";
import { netFlags, pathFlag } from "../sandbox/net_flags.ts";
import { dataFolder } from "./data_folder.ts";

/** What a confined server may access. */
export interface Confinement {
  readonly name: string;
  /** The folder of its package, which it may read. */
  readonly folder: string;
  readonly workspace: string;
  /** The PML home. */
  readonly home: string;
  readonly grants: Grants | undefined;
  /** The person's certificates. It may always read them. */
  readonly certificates: readonly string[];
  /** Names in the workspace that it may not write, and names that it may not read. */
  readonly protection: {
    readonly writeProtected: readonly string[];
    readonly readProtected: readonly string[];
    /** Files that it may not write, wherever they lie. */
    readonly paths?: readonly string[];
  };
}

/**
 * A server, unlike a module, declares no permissions. It gets the workspace and what the person
 * granted.
 */
const ALL = { read: ["."], write: ["."], net: ["*"], run: ["*"], env: [] };

/** Returns what a confined server may access beside the folder of its package. */
export function confinedAccess(
  { certificates, ...where }: Omit<Confinement, "folder" | "protection">,
): Access {
  const access = accessOf(ALL, where);
  const data = dataFolder(where);
  return {
    ...access,
    read: [...access.read, data, ...certificates],
    write: [...access.write, data],
  };
}

/** Returns the arguments of Deno that come before the file of the server. */
export function confinedArgs(confinement: Confinement): readonly string[] {
  const { name, folder, workspace, protection } = confinement;
  const { read, write, net, run } = confinedAccess(confinement);
  const inside = (names: readonly string[]) =>
    names.flatMap((one) => [one.replaceAll("*", ""), ...matching(one, workspace)])
      .filter(Boolean).map((one) => join(workspace, one));
  const { readProtected, writeProtected, paths = [] } = protection;
  const list = (flag: string, paths: readonly string[]) =>
    pathFlag(flag, paths, `Cannot confine ${quoted(name)} to`);
  return [
    ...["run", "--quiet", "--no-prompt", "--no-lock", "--no-remote", "--cached-only"],
    ...["--node-modules-dir=manual", "--allow-env", "--allow-sys"],
    ...list("allow-read", [folder, ...read]),
    ...list("allow-write", write),
    ...list("deny-read", inside(readProtected)),
    ...list("deny-write", [...inside([...readProtected, ...writeProtected]), ...paths]),
    ...list("allow-run", run),
    ...netFlags(net),
  ];
}

/** Returns the pattern of a name in which a star stands for any characters. */
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
  return namesOf(workspace).filter((one) => like.test(one));
}
