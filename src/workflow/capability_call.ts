/**
 * A call of a capability.
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
  readonly depth: number;
  /** Whether it is from a registry. Such capabilities may not call internal tools. */
  readonly isForeign: boolean;
  /** The maximum number of calls that it may make. */
  readonly calls: number;
  /** Makes its calls. */
  readonly callTool: CallTool;
}
