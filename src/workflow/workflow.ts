/**
 * Many calls as one: plans and code. It is loaded by the first plan and the first code.
 *
 * @module
 */

import type { Call, CallTool, Meanwhile, Outcome, ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { Capability } from "./capability.ts";
import type { Run } from "./run.ts";

/** The options of `Workflow`. */
export interface WorkflowOptions {
  /** Runs a call through all gates. */
  readonly callTool: CallTool;
}

/** A request to run a plan or code. Its arguments were checked against the schema. */
export interface WorkflowRequest extends Meanwhile {
  readonly arguments: JsonObject;
  readonly signal: AbortSignal;
  readonly actor: string;
}

/** Runs plans and code. */
export class Workflow {
  readonly #options: WorkflowOptions;

  /** Takes the options; starts nothing. */
  constructor(options: WorkflowOptions) {
    this.#options = options;
  }

  /** Runs code: the meta-tool `execute_code`. */
  code(_request: WorkflowRequest): Promise<Outcome> {
    throw new PmlError("BUG", `Cannot run code ${typeof this.#options}`);
  }

  /** Throws if code or a plan could not run as it stands. Nothing of it runs. */
  async assertRuns(_capability: Pick<Capability, "kind" | "text">): Promise<void> {}

  /** Runs what was saved as a capability. */
  capability(
    _capability: Capability,
    _options: { readonly run: Run; readonly call: Call },
  ): Promise<ToolResult> {
    throw new PmlError("BUG", `Cannot run a capability ${typeof this.#options}`);
  }

  /** Runs a plan, or makes one from an intent: the meta-tool `execute_workflow`. */
  plan(_request: WorkflowRequest): Promise<Outcome> {
    throw new PmlError("BUG", `Cannot run a plan ${typeof this.#options}`);
  }
}
