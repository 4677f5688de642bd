/**
 * The names of the meta-tools that run plans and code.
 *
 * @module
 */

const WORKFLOW_TOOLS = ["execute_workflow", "execute_code"] as const;

/** The name of a meta-tool that runs a plan or code. */
export type WorkflowTool = typeof WORKFLOW_TOOLS[number];

/** Returns whether a name is that of a meta-tool that runs a plan or code. */
export function isWorkflowTool(name: string): name is WorkflowTool {
  return WORKFLOW_TOOLS.some((one) => one === name);
}
