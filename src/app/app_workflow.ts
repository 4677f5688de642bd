/**
 * Opens what runs plans and code. It is loaded by the first of them.
 *
 * @module
 */

import { Workflow } from "../workflow/workflow.ts";
import type { App } from "./app.ts";

/** Opens what runs plans and code; starts nothing. */
export async function workflowOf(app: App): Promise<Workflow> {
  const path = await app.callPath();
  return new Workflow({
    callTool: path.callTool,
    children: path.machine.modules.code,
    limits: () => app.config().limits,
    saving: async () => (await app.capabilities()).saving,
    record: (event, about) => path.record(event, about),
    idOf: (name) => {
      const id = app.servers.idOf(name);
      if (id === undefined) throw app.servers.unknown(name);
      return id;
    },
  });
}
