/**
 * Hides tools that an identity may not call: a call fails as for an unknown tool.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import type { Servers } from "../servers/lists/servers.ts";
import { unknownTool } from "../servers/lists/unknown_tool.ts";
import { decisionOf } from "../calls/decisions.ts";
import type { Policy } from "../policy/policy.ts";

/** Returns the error that the caller of a failed call gets. */
export function errorForIdentity(
  { policy, servers }: { readonly policy: Policy; readonly servers: Servers },
  call: Call,
  error: unknown,
): unknown {
  const { config, judge } = policy.now;
  const isHidden = error instanceof PmlError && error.code === "PERMISSION_DENIED" &&
    config.restrictions?.identity !== undefined &&
    decisionOf(judge, call, call.client.toolset?.()).kind === "deny";
  return isHidden ? unknownTool(call.id, servers) : error;
}
