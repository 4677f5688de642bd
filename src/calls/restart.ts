/**
 * The limit for checks that begin again because the configuration changes.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";

/**
 * How many times the checks of one call may run before the call fails. Each answer of the user and
 * each change of the configuration can start them again.
 */
export const MAX_PASSES = 20;

/** Returns the error of a call that fails because its configuration keeps changing. */
export function configChangesError({ id }: Pick<Call, "id">): PmlError {
  return new PmlError("OVERLOADED", `Cannot run "${id}": its configuration keeps changing`, {
    hint: "Retry in a few seconds",
  });
}
