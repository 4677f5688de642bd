/**
 * Files that can be made again: whole or not at all, and not synced.
 *
 * @module
 */

import { dirname } from "node:path";

/** Puts a file in place, whole, for this person alone, and makes its folder where that is missing. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const fresh = `${path}.${crypto.randomUUID()}.tmp`;
  try {
    Deno.writeFileSync(fresh, bytes, { createNew: true, mode: 0o600 });
    Deno.renameSync(fresh, path);
  } catch (error) {
    // Of a full disk the beginning would stay.
    removeIfAny(fresh);
    throw error;
  }
}

/** Removes a file, if it is there and can be removed. */
export function removeIfAny(path: string): void {
  try {
    Deno.removeSync(path);
  } catch {
    // It was never made, or is gone already.
  }
}
