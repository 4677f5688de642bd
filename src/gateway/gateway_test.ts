import assert from "node:assert/strict";
import { Catalog } from "../search/catalog.ts";
import { Gateway } from "./gateway.ts";
import type { GatewayHost } from "./options.ts";
import { Servers } from "../servers/lists/servers.ts";

Deno.test("a request of a server is a call of the actor of its gateway", async () => {
  const catalog = new Catalog();
  using servers = new Servers({ catalog, waitMs: () => 100, onChange: () => {} });
  const actors: string[] = [];
  const options: Partial<GatewayHost> = {
    servers,
    catalog,
    settings: () => ({ actor: "ci", asksClient: true }) as ReturnType<GatewayHost["settings"]>,
    callTool: ({ actor }) => {
      actors.push(actor);
      return Promise.resolve({ kind: "result", result: { content: [] } });
    },
  };
  // The test uses no other member.
  using gateway = new Gateway(options as GatewayHost);
  const { onServerRequest } = await gateway.inputFrom({
    requestInput: () => Promise.resolve({ action: "cancel" }),
    capabilities: { elicitation: { form: {} } },
  });
  const { signal } = new AbortController();
  await onServerRequest({
    server: "s",
    method: "elicitation/create",
    params: { message: "?" },
    signal,
  });
  assert.deepEqual(actors, ["ci"]);
});
