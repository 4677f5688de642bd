/**
 * Runs the meta-tools `execute_workflow` and `execute_code` for the command line and for programs.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { Meanwhile, ToolResult } from "../core/call.ts";
import type { JsonObject } from "../core/json.ts";
import type { WorkflowTool } from "./_workflow_tools.ts";

/** A call of such a meta-tool. */
export interface WorkflowCall extends Pick<Meanwhile, "onProgress" | "onAsk" | "able"> {
  readonly name: WorkflowTool;
  readonly args: JsonObject;
  readonly signal: AbortSignal;
  /** Asks the user for an approval. Throws if that is not possible. */
  readonly onQuestion: NonNullable<Meanwhile["onQuestion"]>;
}

/** Returns the schema of the arguments of such a meta-tool. */
export async function schemaOfWorkflow(app: App, name: WorkflowTool): Promise<JsonObject> {
  return (await (await app.gateway()).metaCalls()).definition(name).inputSchema;
}

/** Runs a plan or code. Each of its calls passes the checks of every call. */
export async function runWorkflow(
  app: App,
  { name, args, ...request }: WorkflowCall,
): Promise<ToolResult> {
  const metaCalls = await (await app.gateway()).metaCalls();
  const outcome = await metaCalls.call(name, { ...request, arguments: args, answer: undefined });
  if (outcome.kind === "result") return outcome.result;
  throw await (await app.callPath()).leave(outcome.question);
}
