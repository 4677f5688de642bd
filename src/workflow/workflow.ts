/**
 * Many calls as one: plans and code. It is loaded by the first plan and the first code.
 *
 * @module
 */

import type { CallTool, Meanwhile, Outcome } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { CheckTypes } from "./type_check.ts";

/** The options of `Workflow`. */
export interface WorkflowOptions {
  /** Runs a call through all gates. */
  readonly callTool: CallTool;
  /** Checks the types of code before it runs. It starts a process that is ended when it is idle. */
  readonly checkTypes: CheckTypes;
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

  /** Runs a plan, or makes one from an intent: the meta-tool `execute_workflow`. */
  plan(_request: WorkflowRequest): Promise<Outcome> {
    throw new PmlError("BUG", `Cannot run a plan ${typeof this.#options}`);
  }
}
