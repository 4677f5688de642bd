/**
 * The workspace of a process that was not started in a project: PML's own folder in the home.
 *
 * @module
 */

import { join } from "node:path";
import { quoted } from "../core/json.ts";
import { PATHS } from "../core/paths.ts";
import { isInside } from "../io/path_info.ts";
import type { Environment } from "./env.ts";
import { homesOf, namedHomeOf, rulingFiles, type Workspace } from "./workspace.ts";

/** The name of the folder. */
const OWN_FOLDER = "pml-workspace";

/** Makes the folder, and returns it as a workspace; undefined if it cannot be a workspace. */
export function ownFolder(environment: Environment, cwd: string): Workspace | undefined {
  const { homeProblem, userHome } = environment;
  const path = join(userHome, OWN_FOLDER);
  if (homeProblem !== undefined) return undefined;
  try {
    // If the current folder does not exist, the caller reports this error instead.
    Deno.statSync(cwd);
    Deno.mkdirSync(path, { recursive: true });
  } catch {
    return undefined; // the caller reports that there is no workspace
  }
  const root = projectFolder(path, environment);
  if (root === undefined) return undefined;
  const place = { root, found: "default" } as const;
  const warning =
    `${quoted(cwd, 200)} is not a project, so the workspace is ${quoted(root, 200)}. ` +
    "Set PML_WORKSPACE to your project to choose another";
  return { ...place, ...rulingFiles(environment, place), warning };
}

/**
 * Returns the real path of a folder that may be a workspace although the user did not name it.
 * Undefined for a home, a folder that contains a home, and paths that are not folders.
 */
export function projectFolder(path: string, environment: Environment): string | undefined {
  try {
    const root = Deno.realPathSync(path);
    const homes = [...homesOf(environment), namedHomeOf(environment)];
    const isAllowed = Deno.statSync(root).isDirectory &&
      !homes.some((home) => isInside(root, home));
    return isAllowed && PATHS.plain(root) !== undefined ? root : undefined;
  } catch {
    return undefined;
  }
}
