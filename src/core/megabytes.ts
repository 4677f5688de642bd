/**
 * Formats sizes of files for people.
 *
 * @module
 */

/** Returns a number of bytes as megabytes, such as `1.5 MB`. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
