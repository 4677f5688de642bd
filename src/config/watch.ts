/**
 * Watches the files of a configuration, those that are there and those that may come.
 *
 * @module
 */

import { join } from "node:path";
import { Following } from "../io/following.ts";
import { type LoadedConfig, reloadConfig } from "./config.ts";
import { FILE_NAME, realPathOf, rulingFolders } from "./workspace.ts";

/**
 * Calls `onChange` with what was read whenever it differs from what was read before, until the
 * signal aborts. Rejects where the system cannot watch, or with what `onChange` throws.
 */
export async function watchConfig(
  loaded: LoadedConfig,
  onChange: (loaded: LoadedConfig) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let known = loaded; !signal.aborted;) {
    using files = new Following(pathsOf(known), signal);
    // Read after the watching has begun, so that no change falls between.
    const now = await reloadConfig(known);
    if (signal.aborted) return;
    if (fingerprint(now) !== fingerprint(known)) onChange(now);
    known = now;
    await files.change();
  }
}

/** Gives each path at which something that rules is or may come. */
function pathsOf({ environment, workspace, person }: LoadedConfig): readonly string[] {
  const ruling = rulingFolders(environment, workspace)
    .flatMap((folder) => [join(folder, FILE_NAME), join(folder, ".git")]);
  // Behind a link, it is the real file that changes.
  return [...ruling, person.path].flatMap((path) => [path, realPathOf(path)]);
}

/** Tells what was read from what was read before. */
function fingerprint({ workspace, file, parents, person, problem }: LoadedConfig): string {
  const hashes = [file, ...parents, person].map((each) => each?.hash);
  return JSON.stringify([workspace.file, workspace.parents, hashes, problem?.detail]);
}
