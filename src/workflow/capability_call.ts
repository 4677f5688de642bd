/**
 * A call of a capability.
 *
 * @module
 */

import type { CheckedCall } from "../servers/server.ts";
import type { CallTool } from "../protocol/call.ts";

/** A capability that is called. */
export interface CapabilityCall {
  readonly call: CheckedCall;
  /** The id of the run. */
  readonly id: string;
  readonly depth: number;
  /** Whether a registry has it. Internal tools are for what the person saved alone. */
  readonly isForeign: boolean;
  /** How many calls it may make. */
  readonly calls: number;
  /** Makes its calls. */
  readonly callTool: CallTool;
}
