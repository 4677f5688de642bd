/**
 * Runs an npm server under Deno with permissions, in place of node with the person's rights.
 *
 * @module
 */

import { join } from "node:path";
import { quoted } from "../core/json.ts";
import { type Access, accessOf, type Grants } from "../permissions/grants.ts";
import { netFlags, pathFlag } from "../sandbox/net_flags.ts";
import { dataFolder } from "./data_folder.ts";

/** What a confined server may touch. */
export interface Confinement {
  readonly name: string;
  /** The folder of its package, which it may read. */
  readonly folder: string;
  readonly workspace: string;
  /** The PML home. */
  readonly home: string;
  readonly grants: Grants | undefined;
  /** The person's certificates, which it may read whatever was granted. */
  readonly certificates: readonly string[];
  /** Names that it may not write, and not read, in the workspace. */
  readonly protection: {
    readonly writeProtected: readonly string[];
    readonly readProtected: readonly string[];
  };
}

/** A server asks for nothing: it gets the workspace and what the person granted. */
const ALL = { read: ["."], write: ["."], net: ["*"], run: ["*"], env: [] };

/** Gives what a confined server may touch beside the folder of its package. */
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

/** Gives the arguments of Deno before the file of the server. */
export function confinedArgs(confinement: Confinement): readonly string[] {
  const { name, folder, workspace, protection } = confinement;
  const { read, write, net, run } = confinedAccess(confinement);
  const inside = (names: readonly string[]) =>
    names.flatMap((one) => [one.replaceAll("*", ""), ...matching(one, workspace)])
      .filter((one) => one !== "").map((one) => join(workspace, one));
  const { readProtected, writeProtected } = protection;
  const list = (flag: string, paths: readonly string[]) =>
    pathFlag(flag, paths, `Cannot confine ${quoted(name)} to`);
  return [
    ...["run", "--quiet", "--no-prompt", "--no-lock", "--no-remote", "--cached-only"],
    ...["--node-modules-dir=manual", "--allow-env", "--allow-sys"],
    ...list("allow-read", [folder, ...read]),
    ...list("allow-write", write),
    ...list("deny-read", inside(readProtected)),
    ...list("deny-write", inside([...readProtected, ...writeProtected])),
    ...list("allow-run", run),
    ...netFlags(net),
  ];
}

/** Gives what of the workspace a name with a star stands for now; deeper folders are not looked at. */
function matching(name: string, workspace: string): readonly string[] {
  if (!name.includes("*")) return [];
  const like = new RegExp(`^${name.split("*").map(RegExp.escape).join(".*")}$`, "i");
  return [...Deno.readDirSync(workspace)].map((entry) => entry.name).filter((one) =>
    like.test(one)
  );
}
