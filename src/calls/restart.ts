/**
 * The limit for checks that begin again because the configuration changes.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";

/** How often the checks of one call begin, after questions and changes, before it fails. */
export const MAX_PASSES = 20;

/** Returns the error of a call that fails because its configuration keeps changing. */
export function keepsChanging({ id }: Pick<Call, "id">): PmlError {
  return new PmlError("OVERLOADED", `Cannot run "${id}": its configuration keeps changing`, {
    hint: "Retry in a few seconds",
  });
}
