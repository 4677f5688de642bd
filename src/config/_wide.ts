/**
 * Decides which workspaces are so large or so private that reading in them needs a question.
 *
 * @module
 */

import { relative, sep } from "node:path";
import { isInside } from "../io/place.ts";
import type { Environment } from "./env.ts";
import { foldersAbove, homesOf, markedProject, namedHomeOf, type Workspace } from "./workspace.ts";

/** The root of a disk, the folders that contain homes, and homes. */
const TOPS = /^(?:[a-z]:)?(?:[\\/](?:root|(?:var[\\/])?(?:home|Users)(?:[\\/][^\\/]+)?)?)?[\\/]?$/i;
/** Hidden folders of a home. */
const HIDDEN = /^(?:\.|Library$|AppData$)/;
const HOLDS_HOMES = "it contains home folders";

/** Returns why reading needs a question in a workspace; undefined if it needs none. */
export function whyWide({ root }: Workspace, environment: Environment): string | undefined {
  // A home that contains the current folder is not used as home, but counts as one here.
  const named = namedHomeOf(environment);
  const homes = homesOf(environment);
  const isOver = (folder: string) =>
    folder === named || homes.some((home) => isInside(folder, home));
  if (TOPS.test(root) || isOver(root)) return HOLDS_HOMES;
  const { sentBy } = environment;
  if (sentBy !== undefined) return `${sentBy}, and lies elsewhere`;
  const below = [root, ...foldersAbove(root)].filter((each) => !isOver(each));
  if (markedProject(below) !== undefined) return undefined;
  if (isInside(root, named)) return HOLDS_HOMES;
  const names = [...homes, named]
    .flatMap((home) => isInside(home, root) ? relative(home, root).split(sep) : []);
  return names.some((name) => HIDDEN.test(name))
    ? "it is hidden in a home, and nothing marks it as a project"
    : undefined;
}
