/**
 * Refuses every call while the configuration is invalid. Refuses calls that a deny rule matches,
 * and calls to which the fixed arguments cannot be added.
 *
 * @module
 */

import type { Policy } from "../../policy/policy.ts";
import type { CallContext } from "../context.ts";
import { assertNotDenied } from "../decisions.ts";
import type { Check } from "./check.ts";

/** Returns a check that throws the error of the configuration while it is invalid. */
export function configIsValid(policy: Pick<Policy, "now">): Check {
  return () => {
    const { problem } = policy.now.config;
    if (problem !== undefined) throw problem;
    return undefined;
  };
}

/** Throws if a deny rule matches a call, or if its fixed arguments cannot be added. */
export function notDenied(call: CallContext): undefined {
  assertNotDenied(call);
  // guard: unsettled
  if (call.settingsError !== undefined) throw call.settingsError;
}
