/**
 * Says which types tools have: for the check of code, and for the programs of a person.
 *
 * @module
 */

import { join } from "node:path";
import { onAbort } from "../io/waiting.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import {
  declarationsOf,
  type DeclaredServer,
  type Observed,
  type ToolTypes,
  toolTypes,
} from "../workflow/declarations.ts";
import { type CheckTypes, TypeChecker } from "../workflow/type_check.ts";
import type { App } from "./app.ts";
import { observedBy } from "./app_memory.ts";

export { observedBy };

/**
 * Returns what checks types. It starts nothing before the first check. Results that were observed do
 * not count: the next one may be another, and code that is right must run.
 */
export function codeTypes(app: App): CheckTypes {
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
