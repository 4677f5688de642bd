/**
 * Formats numbers for users.
 *
 * @module
 */

/** Returns milliseconds as a duration for users: `300 ms`, `1.5 s`, `60 s`, `10 min`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  return ms >= 120_000 && ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1_000} s`;
}

/** Returns a number of bytes in megabytes (`1.5 MB`), or in kilobytes below 100 KB (`12 KB`). */
export function fileSize(bytes: number): string {
  if (bytes < 1e5) return `${Math.ceil(bytes / 1e3)} KB`;
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}

/** Returns a number with its noun: `1 tool`, `2 tools`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
