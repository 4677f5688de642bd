/**
 * Refuses every new call while the user has paused the workspace.
 *
 * @module
 */

import { NOTHING_RAN, PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import type { Policy } from "../../policy/policy.ts";
import type { CallContext } from "../context.ts";
import type { Check } from "./check.ts";

/** Returns a check that throws PAUSED while the workspace is paused. */
export function notPaused(policy: Pick<Policy, "now">): Check {
  return (call) => {
    const { pause } = policy.now.config;
    // guard: paused
    if (pause !== undefined && !isOfRunning(call)) throw pausedError(call);
    return undefined;
  };
}

/**
 * Returns whether a request belongs to a call that runs: its server sent the request to the client,
 * or the request is about a task that an earlier call created.
 */
function isOfRunning({ via, method }: Pick<CallContext, "via" | "method">): boolean {
  return via === "server" || method?.startsWith("tasks/") === true;
}

function pausedError({ id }: Pick<CallContext, "id">): PmlError {
  return new PmlError("PAUSED", `Cannot run ${quoted(id, 200)}: the user paused this workspace`, {
    hint:
      `${NOTHING_RAN}. Only the user can go on, with \`pml resume\` or on the page (\`pml page\`)`,
  });
}
