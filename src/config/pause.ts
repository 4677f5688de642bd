/**
 * The pause of a workspace: while its file exists, every new call there is refused.
 *
 * @module
 */

import { join } from "node:path";
import { sha256, sha256Async } from "../core/hash.ts";
import { objectOf, quoted, textOf } from "../core/json.ts";
import { infoAt } from "../io/path_info.ts";
import { readPlainText, unlessGone, writePrivate } from "../io/private_files.ts";

/** A pause. */
export interface Pause {
  /** When it began, in milliseconds since 1970; 0 if its file does not contain the time. */
  readonly since: number;
  /** Where the user began it: `terminal` or `page`. */
  readonly by: string;
}

function folderOf(home: string): string {
  return join(home, "paused");
}

function fileIn(home: string, hash: string): string {
  return join(folderOf(home), `${hash.slice(0, 16)}.json`);
}

/** Returns the path of the file that pauses a workspace, by the root of the workspace. */
export function pausePath(home: string, root: string): string {
  return fileIn(home, sha256(root));
}

/** Returns the pause of a workspace; undefined if it is not paused. */
export async function readPause(
  home: string,
  root: string,
  warnings: string[],
): Promise<Pause | undefined> {
  // Nearly every start returns here, after one system call.
  if (infoAt(folderOf(home)) === undefined) return undefined;
  const path = fileIn(home, await sha256Async(root));
  const info = infoAt(path);
  if (info === undefined) return undefined;
  // guard: pause-own
  if (Deno.build.os !== "windows" && info.uid !== Deno.uid()) {
    warnings.push(`Ignored ${quoted(path, 400)}, which pauses nothing: another user owns it`);
    return undefined;
  }
  return pauseIn(path);
}

/** Returns the pause in a file. A file that cannot be read counts as a pause, too. */
function pauseIn(path: string): Pause {
  try {
    const { since, by } = objectOf(JSON.parse(readPlainText(path) ?? ""));
    return { since: typeof since === "number" ? since : 0, by: textOf(by) || "terminal" };
  } catch {
    return { since: 0, by: "terminal" };
  }
}

/** Pauses a workspace. An earlier pause stays. */
export async function pause(home: string, root: string, by: Pause["by"]): Promise<Pause> {
  const earlier = await readPause(home, root, []);
  if (earlier !== undefined) return earlier;
  const since = Date.now();
  await writePrivate(pausePath(home, root), { workspace: root, since, by });
  return { since, by };
}

/** Ends the pause of a workspace. Returns whether it was paused. */
export async function resume(home: string, root: string): Promise<boolean> {
  const path = pausePath(home, root);
  const wasPaused = infoAt(path) !== undefined;
  await Deno.remove(path).catch(unlessGone);
  return wasPaused;
}
