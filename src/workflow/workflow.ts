/**
 * Many calls as one: plans and code. It is loaded by the first plan and the first code.
 *
 * @module
 */

import type { Meanwhile, Outcome, ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { Capability } from "./capability.ts";
import { type CapabilityCall, runCapability } from "./capability_run.ts";
import { type CodeToolHouse, executeCode } from "./code_tool.ts";
import { WaitingRuns } from "./waiting_runs.ts";

/** The options of `Workflow`. */
export interface WorkflowOptions extends Omit<CodeToolHouse, "waiting" | "limits"> {
  /** Returns the limits of runs. */
  readonly limits: () => ReturnType<CodeToolHouse["limits"]> & {
    /** How many runs may wait for answers of the person at once. */
    readonly waitingRuns: number;
  };
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
  readonly #waiting: WaitingRuns;

  /** Takes the options; starts nothing. */
  constructor(options: WorkflowOptions) {
    this.#options = options;
    this.#waiting = new WaitingRuns(() => options.limits().waitingRuns);
  }

  /** Runs code: the meta-tool `execute_code`. */
  async code(request: WorkflowRequest): Promise<Outcome> {
    return await executeCode(request, { ...this.#options, waiting: this.#waiting });
  }

  /** Throws if code or a plan could not run as it stands. Nothing of it runs. */
  async assertRuns(_capability: Pick<Capability, "kind" | "text">): Promise<void> {}

  /** Runs what was saved as a capability. */
  async capability(capability: Capability, called: CapabilityCall): Promise<ToolResult> {
    return await runCapability(capability, called, { ...this.#options, waiting: this.#waiting });
  }

  /** Runs a plan, or makes one from an intent: the meta-tool `execute_workflow`. */
  plan(_request: WorkflowRequest): Promise<Outcome> {
    throw new PmlError("BUG", `Cannot run a plan ${typeof this.#options}`);
  }
}
