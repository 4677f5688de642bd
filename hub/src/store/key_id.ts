/**
 * Names keys.
 *
 * @module
 */

/** Returns the id by which the operator calls a key, from the hash of the key. */
export function keyIdOf(hash: string): string {
  return hash.slice("sha256-".length).slice(0, 12);
}
