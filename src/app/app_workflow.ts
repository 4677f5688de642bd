/**
 * Opens what runs plans and code. It is loaded by the first of them.
 *
 * @module
 */

import { unknownTool } from "../gateway/unknown_tool.ts";
import type { CheckTypes } from "../workflow/type_check.ts";
import { Workflow } from "../workflow/workflow.ts";
import type { App } from "./app.ts";
import { intentsOf } from "./app_intents.ts";

/** Opens what runs plans and code; starts nothing. */
export async function workflowOf(app: App): Promise<Workflow> {
  const path = await app.callPath();
  return new Workflow({
    callTool: path.callTool,
    children: (await path.machine.modules()).code,
    limits: () => app.config().limits,
    checkTypes: typesOf(app),
    saving: async () => (await app.capabilities()).saving,
    record: (event, said) => path.record(event, said),
    idOf: (name) => {
      const id = app.servers.idOf(name);
      if (id === undefined) throw unknownTool(name, app.servers);
      return id;
    },
    check: (call, open) => path.ahead.check(call, open),
    ask: (calls) => path.ahead.askForAll(calls),
    intents: intentsOf(app, (call, open) => path.ahead.check(call, open)),
  });
}

/** Returns what checks types, which is loaded by the first check. */
function typesOf(app: App): CheckTypes {
  const loaded = () => import("./code_types.ts").then(({ codeTypes }) => codeTypes(app));
  let types: ReturnType<typeof loaded> | undefined;
  return async (wanted) => (await (types ??= loaded()))(wanted);
}
