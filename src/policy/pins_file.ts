/**
 * Finds the files of pins. Checks them for parts that are rarely in them, so that the start of PML
 * need not load the code of pins.
 *
 * @module
 */

import { join } from "node:path";
import { isGone } from "../io/path_info.ts";
import { sha256, sha256Async } from "../core/hash.ts";
import { textIfAny } from "../io/regular_file.ts";
import { INSTRUCTIONS } from "../protocol/lists.ts";
import type { PinnedWorkspace } from "./pinned_workspace.ts";

/** The PML home, and the folder of `pml.lock`. */
type PinnedFolder = Pick<PinnedWorkspace, "home" | "root">;

/** The name of the lock in a workspace. */
export const LOCK_NAME = "pml.lock";

/** Returns the path of the file with the approvals of a workspace. */
export function pinsFile(home: string, folder: string): string {
  return fileIn(home, sha256(folder));
}

function fileIn(home: string, hash: string): string {
  return join(home, "pins", `${hash}.json`);
}

/** Returns whether a server of a registry may have been approved in a workspace. */
export async function mayHaveRegistryServers(home: string, folder: string): Promise<boolean> {
  // Every source but "private" (`OWN_SOURCE`) is a registry. A missing file means no approvals, and
  // reading the pins reports an unreadable file.
  return /"source": "(?!private")/.test(textIfAny(fileIn(home, await sha256Async(folder))) ?? "");
}

/** Returns the path of the definitions that a server listed in a workspace. */
export function listedFile({ home, root }: PinnedFolder, server: string): string {
  return listedIn(home, sha256(listedName(root, server)));
}

function listedIn(home: string, hash: string): string {
  return join(home, "pins", "listed", `${hash}.json`);
}

function listedName(folder: string, server: string): string {
  return JSON.stringify([folder, server]);
}

/** Returns whether one of the servers may have listed instructions in a workspace. */
export async function mayHaveInstructions(
  { home, root }: PinnedFolder,
  servers: readonly string[],
): Promise<boolean> {
  const texts = await Promise.all(
    servers.map(async (server) =>
      textIfAny(listedIn(home, await sha256Async(listedName(root, server))))
    ),
  );
  return texts.some((text) => text?.includes(JSON.stringify(INSTRUCTIONS)));
}

/** Returns whether anything may be pinned in a workspace: a new PML home has no pins at all. */
export function mayHavePins(home: string, folder: string): boolean {
  return mayExist(join(home, "pins")) || mayExist(join(folder, LOCK_NAME));
}

function mayExist(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    return !isGone(error);
  }
}
