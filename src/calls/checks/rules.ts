/**
 * Refuses calls that a deny rule matches, and calls whose fixed arguments cannot be added.
 *
 * @module
 */

import { assertNotDenied } from "../decisions.ts";
import type { CallContext } from "../context.ts";

/** Throws for a call that a deny rule matches, or whose fixed arguments cannot be added. */
export function notDenied(call: CallContext): undefined {
  assertNotDenied(call);
  // guard: unsettled
  if (call.settingsError !== undefined) throw call.settingsError;
}
