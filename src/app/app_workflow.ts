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
    callTool: (call) => path.callTool(call),
    children: path.machine.modules.code,
    saving: async () => (await app.capabilities()).saving,
    record: (event, about) => path.record(event, about),
    idOf: (name) => {
      const id = app.servers.idOf(name);
      if (id === undefined) throw app.servers.unknown(name);
      return id;
    },
    check: (call, open) => path.ahead.check(call, open),
    ask: (calls) => path.ahead.askForAll(calls),
    note: (event, said) => path.note(event, said),
    limits: () => app.config().limits,
  });
}
