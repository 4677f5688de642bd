/**
 * Refuses every call while the configuration is not valid.
 *
 * @module
 */

import type { Policy } from "../../policy/policy.ts";
import type { Check } from "./check.ts";

/** Returns a check that throws the problem of the configuration, if it has one. */
export function configIsValid(policy: Pick<Policy, "now">): Check {
  return () => {
    const { problem } = policy.now.config;
    if (problem !== undefined) throw problem;
    return undefined;
  };
}
