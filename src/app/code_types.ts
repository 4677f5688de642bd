/**
 * Says which types tools have: for the check of code, and for the programs of a person.
 *
 * @module
 */

import { join } from "node:path";
import { onAbort } from "../io/waiting.ts";
import type { DeclaredServer } from "../workflow/declarations.ts";
import { type CheckTypes, TypeChecker } from "../workflow/type_check.ts";
import type { App } from "./app.ts";

/** Returns what checks types. It starts nothing before the first check. */
export function codeTypes(app: App): CheckTypes {
  const checker = new TypeChecker({
    folder: join(app.config().home, "types"),
    groups: async () => (await app.callPath()).machine.groups,
    idleMs: () => app.config().limits.idleMs,
    names: () => app.servers.states().map(({ name }) => name),
    tools: async (server) => {
      await app.servers.prepare("tools", { only: server });
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
