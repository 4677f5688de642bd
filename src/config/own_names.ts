/**
 * The names of PML's own variables, for those who compare environments.
 *
 * @module
 */

/** Returns the names of all variables that begin with `PML_`. */
export function ownNames(): readonly string[] {
  return Object.keys(Deno.env.toObject()).filter((name) => name.startsWith("PML_"));
}
