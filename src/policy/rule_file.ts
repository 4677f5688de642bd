/**
 * The files to which rules are written, and where their rules apply.
 *
 * @module
 */

import type { LoadedConfig } from "../config/config.ts";
import { visible } from "../core/json.ts";

/** A file to which rules are written. */
export interface RuleFile {
  readonly path: string;
  /** Whether it is the user's own file, whose rules apply in all workspaces. */
  readonly isOfUser: boolean;
}

/** Returns where a rule is written and where it applies, such as `in ~/.pml/config.yaml, in all …`. */
export function reachText({ path, isOfUser }: RuleFile, loaded: LoadedConfig): string {
  const { userHome } = loaded.environment;
  const isInHome = path.startsWith(`${userHome}/`);
  const short = visible(isInHome ? `~${path.slice(userHome.length)}` : path, Infinity);
  return `in ${short}, ${isOfUser ? "in all your workspaces" : "in this workspace"}`;
}
