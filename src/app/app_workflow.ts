/**
 * Opens what runs plans and code. It is loaded by the first of them.
 *
 * @module
 */

import { Workflow } from "../workflow/workflow.ts";
import type { App } from "./app.ts";

/** Opens what runs plans and code; starts nothing. */
export async function workflowOf(app: App): Promise<Workflow> {
  const { callTool } = await app.callPath();
  return new Workflow({ callTool });
}
