/**
 * Watches the files of a configuration: those that exist and those that may appear.
 *
 * @module
 */

import { join } from "node:path";
import { realPathOf } from "../io/path_info.ts";
import { PathWatcher } from "../io/path_watcher.ts";
import { policyPaths } from "./_company_file.ts";
import type { LoadedConfig } from "./config.ts";
import { pausePath } from "./pause.ts";
import { linksOn } from "./ruling_files.ts";
import { FILE_NAME, rulingFolders } from "./workspace.ts";

/**
 * Calls `reread` at once and after each change of one of the files, until the signal aborts.
 * Rejects if the system cannot watch files, or if `reread` rejects.
 */
export async function watchConfig(
  paths: () => readonly string[],
  reread: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    // If a path is a link, changes happen to the real file.
    const watched = paths().flatMap((path) => [path, realPathOf(path), ...linksOn(path)]);
    using files = new PathWatcher([...new Set(watched)], signal);
    // The files are read after the watcher has started, so that no change is missed.
    await reread();
    if (signal.aborted) return;
    await files.change();
  }
}

/** Returns each path at which a file with rules is, or may appear. */
export function rulingPaths(
  { environment, workspace, userConfig }: LoadedConfig,
): readonly string[] {
  const { home, homePath } = environment;
  // guard: company-followed
  return [
    ...rulingFolders(environment, workspace)
      .flatMap((folder) => [join(folder, FILE_NAME), join(folder, ".git")]),
    userConfig.path,
    join(home, "capabilities", "index.json"),
    pausePath(home, workspace.root),
    // If the path of the home now leads to another folder, PML must report it.
    ...homePath === undefined || homePath === home ? [] : [join(homePath, "config.yaml")],
    ...policyPaths(environment),
  ];
}

/** Returns whether another configuration was read than before. */
export function isOtherConfig(now: LoadedConfig, before: LoadedConfig): boolean {
  return fingerprint(now) !== fingerprint(before);
}

function fingerprint(loaded: LoadedConfig): string {
  const { workspace, file, parents, userConfig, access, pause, problem } = loaded;
  const policies = access?.company?.files ?? [];
  const hashes = [file, ...parents, userConfig, ...policies].map((each) => each?.hash);
  const { root, file: own, parents: above } = workspace;
  return JSON.stringify([root, own, above, hashes, pause, problem?.detail]);
}
