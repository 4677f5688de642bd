/**
 * A made-up check, for tests: refuses calls whose tool name is in capitals.
 *
 * @module
 */

import { PmlError } from "../../src/core/errors.ts";
import type { Check } from "../../src/calls/checks/check.ts";

/** Refuses calls of tools whose names are in capitals. */
export const notInCapitals: Check = ({ id, names: { tool } }) => {
  if (tool !== tool.toUpperCase()) return undefined;
  throw new PmlError("PERMISSION_DENIED", `Cannot run "${id}": its name is in capitals`);
};
