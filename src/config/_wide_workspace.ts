/**
 * Decides which workspaces are so large or so private that reading in them needs a question.
 *
 * @module
 */

import { relative, sep } from "node:path";
import { isInside } from "../io/path_info.ts";
import type { Environment } from "./env.ts";
import { findProject, foldersAbove, homesOf, namedHomeOf, type Workspace } from "./workspace.ts";

/** Matches the root of a disk, folders that contain homes, and homes. */
const TOPS = /^(?:[a-z]:)?(?:[\\/](?:root|(?:var[\\/])?(?:home|Users)(?:[\\/][^\\/]+)?)?)?[\\/]?$/i;
/** Matches the names of hidden folders in a home. */
const HIDDEN = /^(?:\.|Library$|AppData$)/;
const CONTAINS_HOMES = "it contains home folders";

/** Returns why reading needs a question in a workspace; undefined if it needs none. */
export function whyWide({ root }: Workspace, environment: Environment): string | undefined {
  // PML does not use a home that contains the current folder, but here it counts as a home.
  const namedHome = namedHomeOf(environment);
  const homes = homesOf(environment);
  const containsHome = (folder: string) =>
    folder === namedHome || homes.some((home) => isInside(folder, home));
  if (TOPS.test(root) || containsHome(root)) return CONTAINS_HOMES;
  const { workspaceSetting } = environment;
  if (workspaceSetting !== undefined) {
    return `${workspaceSetting}, and that file is in another folder`;
  }
  const folders = [root, ...foldersAbove(root)].filter((folder) => !containsHome(folder));
  if (findProject(folders) !== undefined) return undefined;
  if (isInside(root, namedHome)) return CONTAINS_HOMES;
  const names = [...homes, namedHome]
    .flatMap((home) => isInside(home, root) ? relative(home, root).split(sep) : []);
  return names.some((name) => HIDDEN.test(name))
    ? "it is hidden in a home, and nothing marks it as a project"
    : undefined;
}
