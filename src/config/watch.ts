/**
 * Watches the files of a configuration: those that exist and those that may appear.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type LoadedConfig, reloadConfig } from "./config.ts";
import { FILE_NAME, holds, realPathOf, rulingFolders } from "./workspace.ts";

/**
 * How long a folder must be quiet before the files are read again. Editors write in several steps.
 */
const QUIET_MS = 40;

/**
 * Reads the configuration after each change and calls `onChange` if it differs, until the signal
 * aborts. Rejects if the system cannot watch files, or if `onChange` throws.
 */
export async function watchConfig(
  loaded: LoadedConfig,
  onChange: (loaded: LoadedConfig) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let known = loaded; !signal.aborted;) {
    const paths = pathsOf(known);
    using watching = watch(paths, signal);
    // Reading begins after watching has begun, so that no change is missed.
    const now = await reloadConfig(known);
    if (signal.aborted) return;
    if (fingerprint(now) !== fingerprint(known)) onChange(now);
    known = now;
    await watching.change();
  }
}

interface Watching extends Disposable {
  /** Resolves shortly after one of the paths changed, or on abort. */
  change(): Promise<void>;
}

function watch(paths: readonly string[], signal: AbortSignal): Watching {
  // Folders are watched, not files, because a file may appear later or be replaced.
  const folders = new Set(paths.map((path) => nearest(dirname(path))));
  const watcher = Deno.watchFs([...folders], { recursive: false });
  const close = () => watcher.close();
  signal.addEventListener("abort", close, { once: true });
  return {
    async change() {
      for await (const { kind, paths: touched } of watcher) {
        // Reading causes an event too, which must not cause another reading.
        if (kind === "access") continue;
        if (touched.some((folder) => paths.some((path) => holds(folder, path)))) break;
      }
      // An abort only ends the wait.
      await setTimeout(QUIET_MS, undefined, { signal }).catch(() => {});
    },
    [Symbol.dispose]() {
      signal.removeEventListener("abort", close);
      if (!signal.aborted) close();
    },
  };
}

/** Returns every path at which a file that sets rules exists or may appear. */
function pathsOf({ environment, workspace, person }: LoadedConfig): readonly string[] {
  const ruling = rulingFolders(environment, workspace)
    .flatMap((folder) => [join(folder, FILE_NAME), join(folder, ".git")]);
  // If a path is a link, the real file is the one that changes.
  return [...ruling, person.path].flatMap((path) => [path, realPathOf(path)]);
}

function nearest(path: string): string {
  try {
    if (Deno.statSync(path).isDirectory) return path;
  } catch {
    // The folder above is watched until this one exists.
  }
  return nearest(dirname(path));
}

/** Returns a text that is different if something else was read. */
function fingerprint({ workspace, file, parents, person, problem }: LoadedConfig): string {
  const hashes = [file, ...parents, person].map((each) => each?.hash);
  return JSON.stringify([workspace.file, workspace.parents, hashes, problem?.detail]);
}
