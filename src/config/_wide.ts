/**
 * Tells which workspaces are so wide, or so private, that reading in them asks first.
 *
 * @module
 */

import { relative, sep } from "node:path";
import { quoted } from "../core/json.ts";
import { isInside } from "../io/place.ts";
import type { Environment } from "./env.ts";
import { foldersAbove, homesOf, markedProject, namedHomeOf, type Workspace } from "./workspace.ts";

/** The top of a disk, the folders of homes, and homes. */
const TOPS = /^(?:[a-z]:)?(?:[\\/](?:root|(?:var[\\/])?(?:home|Users)(?:[\\/][^\\/]+)?)?)?[\\/]?$/i;
/** What people do not look into. */
const HIDDEN = /^(?:\.|Library$|AppData$)/;
const HOLDS_HOMES = "it holds homes of people";

/** Says why reading asks in a workspace; undefined where it need not. */
export function whyWide({ root }: Workspace, environment: Environment): string | undefined {
  // A home that holds the current folder does not count, and is one all the same.
  const named = namedHomeOf(environment);
  const homes = homesOf(environment);
  const isOver = (folder: string) =>
    folder === named || homes.some((home) => isInside(folder, home));
  if (TOPS.test(root) || isOver(root)) return HOLDS_HOMES;
  const { sentBy } = environment;
  if (sentBy !== undefined) return `${quoted(sentBy, 200)} sets PML_WORKSPACE, and lies elsewhere`;
  const below = [root, ...foldersAbove(root)].filter((each) => !isOver(each));
  if (markedProject(below) !== undefined) return undefined;
  if (isInside(root, named)) return HOLDS_HOMES;
  const names = [...homes, named]
    .flatMap((home) => isInside(home, root) ? relative(home, root).split(sep) : []);
  return names.some((name) => HIDDEN.test(name))
    ? "it lies in a hidden folder of a home, and nothing marks it as a project"
    : undefined;
}
