/**
 * Removes expired approvals from the PML home. They contain the arguments of calls.
 *
 * @module
 */

import { join } from "node:path";
import { isObject } from "../core/json.ts";
import { readPlainText, unlessGone } from "../io/private_files.ts";

/** The folders of pending and of granted approvals in a PML home. */
export const APPROVAL_FOLDERS = ["pending", "approved"] as const;

/**
 * Removes expired approvals and temporary files of killed processes. Every start and end of PML and
 * every command calls this, so it is synchronous and loads no module. The next sweep retries a file
 * that cannot be removed. A file without a readable time is kept for `ttl` milliseconds.
 */
export function sweepApprovals(home: string, now: number, ttl: number): void {
  for (const folder of APPROVAL_FOLDERS) {
    for (const name of namesIn(join(home, folder))) {
      sweepFile(join(home, folder, name), now, ttl);
    }
  }
}

function sweepFile(path: string, now: number, ttl: number): void {
  try {
    if (isExpired(path, now, ttl)) Deno.removeSync(path);
  } catch {
    // Another process may have removed it.
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name);
  } catch {
    return [];
  }
}

function isExpired(path: string, now: number, ttl: number): boolean {
  const { expires, asked } = timesIn(path);
  // Treats times in the far future (a clock that was ahead) as expired.
  if (expires !== undefined && asked !== undefined) return now >= expires || asked > now + ttl;
  return (Deno.lstatSync(path).mtime?.getTime() ?? Infinity) + ttl < now;
}

/** Returns the times of an approval; none if the file cannot be read or is still being written. */
function timesIn(path: string): { readonly expires?: number; readonly asked?: number } {
  if (!path.endsWith(".json")) return {};
  try {
    const stored: unknown = JSON.parse(readPlainText(path) ?? "");
    const { expires, asked } = isObject(stored) ? stored : {};
    return typeof expires === "number" && typeof asked === "number" ? { expires, asked } : {};
  } catch (error) {
    return error instanceof SyntaxError ? {} : unlessGone(error) ?? {};
  }
}
