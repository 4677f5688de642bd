/**
 * Says how large something is that a person downloads or keeps.
 *
 * @module
 */

/** Says a number of bytes as people do. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
