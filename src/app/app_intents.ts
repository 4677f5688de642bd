/**
 * Gives plans that are made of intents what they need: search, definitions and the memory of use.
 *
 * @module
 */

import type { Call } from "../protocol/call.ts";
import type { ToolId } from "../core/tool_id.ts";
import { Cancellation } from "../core/cancellation.ts";
import { missingIn } from "../protocol/toolset.ts";
import type { IntentsOptions } from "../workflow/intents.ts";
import type { App } from "./app.ts";

/** Looks at a call before it runs: whether its server is approved, and throws what is wrong. */
type CheckCall = (call: Call, open: ReadonlySet<string>) => Promise<boolean>;

/** Opens what answers intents; starts nothing. */
export function intentsOf(app: App, check: CheckCall): IntentsOptions {
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
            fit: (text) => memory.fit(text),
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
      // What is wrong with a call is no error: the model sees the plan.
      return await check(asked, open).catch(() => false);
    },
  };
}
