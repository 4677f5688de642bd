/**
 * Watches the files of a configuration: those that exist and those that may appear.
 *
 * @module
 */

import { join } from "node:path";
import { PathWatcher } from "../io/following.ts";
import { policyPaths } from "./_company_file.ts";
import type { LoadedConfig } from "./config.ts";
import { linksOn } from "./ruling_files.ts";
import { FILE_NAME, realPathOf, rulingFolders } from "./workspace.ts";

/**
 * Reads the files again after each change of one of them, until the signal aborts. Rejects if the system cannot
 * watch files, or if reading rejects.
 */
export async function watchConfig(
  paths: () => readonly string[],
  reread: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    // If a path is a link, the real file is the one that changes.
    const watched = paths().flatMap((path) => [path, realPathOf(path), ...linksOn(path)]);
    using files = new PathWatcher([...new Set(watched)], signal);
    // Read after the watching has begun, so that no change falls between.
    await reread();
    if (signal.aborted) return;
    await files.change();
  }
}

/** Returns each path at which a file with rules is, or may appear. */
export function rulingPaths({ environment, workspace, person }: LoadedConfig): readonly string[] {
  const { home, homePath } = environment;
  // guard: company-followed
  return [
    ...rulingFolders(environment, workspace)
      .flatMap((folder) => [join(folder, FILE_NAME), join(folder, ".git")]),
    person.path,
    join(home, "capabilities", "index.json"),
    // Another folder under the path of the home is another configuration.
    ...homePath === undefined || homePath === home ? [] : [join(homePath, "config.yaml")],
    ...policyPaths(environment),
  ];
}

/** Returns whether another configuration was read than before. */
export function isOtherConfig(now: LoadedConfig, before: LoadedConfig): boolean {
  return fingerprint(now) !== fingerprint(before);
}

function fingerprint({ workspace, file, parents, person, others, problem }: LoadedConfig): string {
  const policies = others?.company?.files ?? [];
  const hashes = [file, ...parents, person, ...policies].map((each) => each?.hash);
  const { root, file: own, parents: above } = workspace;
  return JSON.stringify([root, own, above, hashes, problem?.detail]);
}
