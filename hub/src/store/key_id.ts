/**
 * The ids of keys.
 *
 * @module
 */

/** Returns the id of a key, which the operator uses for it: the beginning of its hash. */
export function keyIdOf(hash: string): string {
  return hash.slice("sha256-".length).slice(0, 12);
}
