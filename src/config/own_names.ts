/**
 * The names of PML's own environment variables.
 *
 * @module
 */

import { variableName } from "../core/steering.ts";

/** Returns the names that begin with `PML_`, in any case on Windows. */
export function ownNames(variables: Readonly<Record<string, string>>): readonly string[] {
  return Object.keys(variables).filter((name) => variableName(name).startsWith("PML_"));
}
