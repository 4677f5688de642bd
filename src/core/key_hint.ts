/**
 * Says how a person gives PML a key.
 *
 * @module
 */

/** Returns the hint for a key that is missing. */
export function keyHint(name = "NAME"): string {
  return `Run \`pml key set ${name}\`, or set it where you start pml`;
}
