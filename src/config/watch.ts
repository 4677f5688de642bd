/**
 * Watches the files of a configuration, those that are there and those that may come.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type LoadedConfig, reloadConfig } from "./config.ts";
import { FILE_NAME, holds, realPathOf, rulingFolders } from "./workspace.ts";

/** How long a folder must be quiet before the files are read again: editors write in steps. */
const QUIET_MS = 40;

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
    const paths = pathsOf(known);
    using watching = watch(paths, signal);
    // Read after the watching has begun, so that no change falls between.
    const now = await reloadConfig(known);
    if (signal.aborted) return;
    if (fingerprint(now) !== fingerprint(known)) onChange(now);
    known = now;
    await watching.change();
  }
}

interface Watching extends Disposable {
  /** Comes back a moment after one of the paths was touched, or on abort. */
  change(): Promise<void>;
}

function watch(paths: readonly string[], signal: AbortSignal): Watching {
  // Folders are watched, not files: a file may come later, or be put in the place of another.
  const folders = new Set(paths.map((path) => nearest(dirname(path))));
  const watcher = Deno.watchFs([...folders], { recursive: false });
  const close = () => watcher.close();
  signal.addEventListener("abort", close, { once: true });
  return {
    async change() {
      for await (const { kind, paths: touched } of watcher) {
        // Reading is an event too, and it must not lead to another reading.
        if (kind === "access") continue;
        if (touched.some((folder) => paths.some((path) => holds(folder, path)))) break;
      }
      // An abort only ends the wait sooner.
      await setTimeout(QUIET_MS, undefined, { signal }).catch(() => {});
    },
    [Symbol.dispose]() {
      signal.removeEventListener("abort", close);
      if (!signal.aborted) close();
    },
  };
}

/** Gives each path at which something that rules is or may come. */
function pathsOf({ environment, workspace, person }: LoadedConfig): readonly string[] {
  const ruling = rulingFolders(environment, workspace)
    .flatMap((folder) => [join(folder, FILE_NAME), join(folder, ".git")]);
  // Behind a link, it is the real file that changes.
  return [...ruling, person.path].flatMap((path) => [path, realPathOf(path)]);
}

function nearest(path: string): string {
  try {
    if (Deno.statSync(path).isDirectory) return path;
  } catch {
    // The folder above is watched until this one is there.
  }
  return nearest(dirname(path));
}

/** Tells what was read from what was read before. */
function fingerprint({ workspace, file, parents, person, problem }: LoadedConfig): string {
  const hashes = [file, ...parents, person].map((each) => each?.hash);
  return JSON.stringify([workspace.file, workspace.parents, hashes, problem?.detail]);
}
