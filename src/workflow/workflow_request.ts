/**
 * A request to run a plan or code.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import type { CallClient } from "../protocol/call.ts";

/** A request to run a plan or code. Its arguments were checked against the schema. */
export interface WorkflowRequest {
  readonly arguments: JsonObject;
  readonly signal: AbortSignal;
  /** The client that waits for the answer. */
  readonly client: CallClient;
  readonly actor: string;
}
