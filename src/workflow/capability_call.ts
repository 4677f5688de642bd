/**
 * The values that describe one call of a capability.
 *
 * @module
 */

import type { CheckedCall } from "../servers/server.ts";
import type { CallTool } from "../protocol/call.ts";

/** The call of a capability. */
export interface CapabilityCall {
  readonly call: CheckedCall;
  /** The id of the run. */
  readonly id: string;
  /** The number of capabilities that wait for each other, including this capability. */
  readonly depth: number;
  /** Whether the capability is from a registry. If so, it cannot call internal tools. */
  readonly isForeign: boolean;
  /** The maximum number of calls that the capability may make. */
  readonly maxCalls: number;
  /** Makes the calls of the capability. */
  readonly callTool: CallTool;
}
