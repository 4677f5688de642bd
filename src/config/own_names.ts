/**
 * The names of PML's own variables, for those who compare environments.
 *
 * @module
 */

import { variableName } from "../core/steering.ts";

/** Returns the names of all variables that begin with `PML_`. */
export function ownNames(variables: Readonly<Record<string, string>>): readonly string[] {
  return Object.keys(variables).filter((name) => variableName(name).startsWith("PML_"));
}
