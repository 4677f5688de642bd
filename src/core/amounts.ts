/**
 * Formats numbers for people.
 *
 * @module
 */

// Defined there, because messages of a start need it and no other function of this file.
export { durationText } from "./errors.ts";

/** Returns a number of bytes as megabytes, such as `1.5 MB`, or few of them as `12 KB`. */
export function fileSize(bytes: number): string {
  if (bytes < 1e5) return `${Math.ceil(bytes / 1e3)} KB`;
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}

/** Returns a number with its noun: `1 tool`, `2 tools`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
