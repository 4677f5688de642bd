/**
 * Opens the runner of plans, code and intents. The first of them loads it.
 *
 * @module
 */

import { join } from "node:path";
import { Cancellation } from "../core/cancellation.ts";
import type { ToolId } from "../core/tool_id.ts";
import { onAbort } from "../io/waiting.ts";
import type { Call } from "../protocol/call.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { missingIn } from "../protocol/toolset.ts";
import { unknownTool } from "../servers/lists/unknown_tool.ts";
import {
  declarationsOf,
  type DeclaredServer,
  type Observed,
  type ToolTypes,
  toolTypes,
} from "../workflow/declarations.ts";
import type { IntentsOptions } from "../workflow/intents.ts";
import type { CheckTypes } from "../workflow/type_check.ts";
import { Workflow } from "../workflow/workflow.ts";
import type { App } from "./app.ts";
import { observedBy } from "./app_memory.ts";

export { observedBy };

/** Opens the runner of plans and code. Starts nothing. */
export async function workflowOf(app: App): Promise<Workflow> {
  const path = await app.callPath();
  return new Workflow({
    callTool: path.callTool,
    children: (await path.machine.modules()).code,
    limits: () => app.config().limits,
    checkTypes: checkerOf(app),
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

/**
 * Returns the check of the types of code. The first check loads it. Observed results do not count: the
 * next one may differ, and correct code must run.
 */
function checkerOf(app: App): CheckTypes {
  let check: Promise<CheckTypes> | undefined;
  return async (code) => await (await (check ??= openChecker(app)))(code);
}

async function openChecker(app: App): Promise<CheckTypes> {
  const { TypeChecker } = await import("../workflow/type_check.ts");
  const checker = new TypeChecker({
    folder: join(app.config().home, "types"),
    groups: async () => (await app.callPath()).machine.groups,
    idleMs: () => app.config().limits.idleMs,
    names: () => app.servers.states().map(({ name }) => name),
    tools: async (server) => {
      await app.servers.lists.prepare("tools", { only: server });
      return toolsOf(app, server);
    },
    isOffered: async (name) =>
      app.catalog.toolsOf(name).length > 0 || (await (await app.finder()).offered(name)).length > 0,
  });
  onAbort(app.closing, () => void checker[Symbol.asyncDispose]());
  return checker.check;
}

/** Returns the known tools of a server that no rule denies, by the names that clients see. */
export function toolsOf(app: App, server: string): DeclaredServer["tools"] {
  return app.catalog.toolsOf(server)
    .filter(({ id }) => app.policy.now.judge(id).kind !== "deny")
    .map(({ tool }) => tool);
}

/** Returns the declarations of servers, for the programs of a person. */
export function declarations(
  servers: readonly DeclaredServer[],
  observed: Observed,
): readonly string[] {
  return servers.length === 0 ? [] : [declarationsOf(servers, { observed })];
}

/** Returns the types of one tool. */
export function typesOf(
  tool: ToolDefinition,
  { server, observed }: { readonly server: string; readonly observed: Observed },
): Pick<ToolTypes, "args" | "output"> {
  const { args, output } = toolTypes(server, tool, { observed });
  return { args, output };
}

/** Returns whether the server of a call is approved, before it runs. Throws if the call is invalid. */
type CheckCall = (call: Call, open: ReadonlySet<string>) => Promise<boolean>;

/** Opens the options of intents. Starts nothing. */
function intentsOf(app: App, check: CheckCall): IntentsOptions {
  const { policy, catalog, servers } = app;
  return {
    confidence: () => app.config().confidence,
    open: async ({ actor, client: { toolset } }) => {
      const allowed = (id: ToolId) =>
        (missingIn([toolset?.()], id) ?? policy.now.judge(id)).kind !== "deny";
      const isThere = (id: ToolId) => catalog.get(id) !== undefined && allowed(id);
      const [finder, memory] = await Promise.all([
        app.finder(),
        app.memory(),
        servers.lists.prepare(),
      ]);
      return {
        search: (query) =>
          finder.search(query, {
            allowed,
            memory,
          }),
        output: (id, { outputSchema }) => {
          const own = catalog.get(id)?.own;
          return outputSchema ?? (own && memory.observed(id, own));
        },
        next: (id) => new Map([...memory.next(id)].filter(([id]) => isThere(id))),
        onFound: (query, found) => memory.searched(actor, { query, found }),
      };
    },
    runs: async ({ tool, arguments: args, signal, ...call }, open) => {
      const id = servers.idOf(tool);
      if (id === undefined) return false;
      const verdict = policy.now.judge(id, open.size > 0 ? undefined : args);
      if (verdict.kind !== "allow" || verdict.depends !== undefined) return false;
      using cancellation = Cancellation.of(signal);
      const about = { id, arguments: args, via: "plan", callId: crypto.randomUUID() };
      const asked = { ...about, cancellation, ...call };
      // An invalid call is no error: the model sees the plan.
      return await check(asked, open).catch(() => false);
    },
  };
}
