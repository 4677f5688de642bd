/**
 * The names of PML's own variables, for those who compare environments.
 *
 * @module
 */

import { variableName } from "../core/steering.ts";

/** Returns the names of all variables that begin with `PML_`. */
export function ownNames(): readonly string[] {
  return Object.keys(Deno.env.toObject()).filter((name) => variableName(name).startsWith("PML_"));
}
