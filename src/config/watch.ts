/**
 * Watches the files of a configuration: those that exist and those that may appear.
 *
 * @module
 */

import { join } from "node:path";
import { Following } from "../io/following.ts";
import { policyPaths } from "./_company_file.ts";
import { type LoadedConfig, reloadConfig } from "./config.ts";
import { FILE_NAME, realPathOf, rulingFolders } from "./workspace.ts";

/**
 * Reads the configuration after each change and calls `onChange` if it differs, until the signal
 * aborts. Rejects if the system cannot watch files, or if `onChange` throws.
 */
export async function watchConfig(
  loaded: LoadedConfig,
  { onChange, onLook, also = () => [], signal }: {
    readonly onChange: (loaded: LoadedConfig) => void;
    /** Is called after each change, also where the configuration is the same. */
    readonly onLook?: () => void;
    /** Returns the paths of other files to look at. */
    readonly also?: (loaded: LoadedConfig) => readonly string[];
    readonly signal: AbortSignal;
  },
): Promise<void> {
  for (let known = loaded; !signal.aborted;) {
    using files = new Following([...pathsOf(known), ...also(known)], signal);
    // Read after the watching has begun, so that no change falls between.
    const now = await reloadConfig(known);
    if (signal.aborted) return;
    if (fingerprint(now) !== fingerprint(known)) onChange(now);
    known = now;
    onLook?.();
    await files.change();
  }
}

/** Gives each path at which something that rules is or may come. */
function pathsOf({ environment, workspace, person }: LoadedConfig): readonly string[] {
  const ruling = rulingFolders(environment, workspace)
    .flatMap((folder) => [join(folder, FILE_NAME), join(folder, ".git")]);
  // If a path is a link, the real file is the one that changes.
  const capabilities = join(environment.home, "capabilities", "index.json");
  const all = [...ruling, person.path, capabilities, ...policyPaths(environment)];
  return all.flatMap((path) => [path, realPathOf(path)]);
}

/** Tells what was read from what was read before. */
function fingerprint({ workspace, file, parents, person, others, problem }: LoadedConfig): string {
  const policies = others?.company?.files ?? [];
  const hashes = [file, ...parents, person, ...policies].map((each) => each?.hash);
  return JSON.stringify([workspace.file, workspace.parents, hashes, problem?.detail]);
}
