import assert from "node:assert/strict";
import { toolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../core/tool.ts";
import { Catalog } from "../search/catalog.ts";
import type { GatewayOptions } from "./gateway.ts";
import { MetaCalls } from "./meta_calls.ts";
import { Schemas } from "./schemas.ts";
import { Servers } from "./servers.ts";

const TOOL: ToolDefinition = { name: "go", inputSchema: { type: "object" } };

Deno.test("schema says that an offered tool asks first, also where a rule lets it run, until it is used", async () => {
  const catalog = new Catalog();
  const offered = (id: string) => id === toolId("far", "go") ? TOOL : undefined;
  using servers = new Servers({ catalog, waitMs: 100, onChange: () => {}, offered });
  const options: Partial<GatewayOptions> = {
    servers,
    catalog,
    schemas: new Schemas(),
    judge: () => ({ kind: "allow", rule: "far:go", source: "test" }),
    settings: () => ({ batchMax: 10 }) as ReturnType<GatewayOptions["settings"]>,
    problem: () => undefined,
  };
  // What it is not asked for here is left out.
  const calls = new MetaCalls(options as GatewayOptions);
  const shown = async () => {
    const outcome = await calls.call("schema", {
      arguments: { tools: ["far:go"] },
      signal: AbortSignal.timeout(10_000),
      answer: undefined,
    });
    assert.ok(outcome.kind === "result");
    const [part] = outcome.result.content;
    return JSON.parse(part?.type === "text" ? String(part.text) : "")[0].permission;
  };
  assert.equal(await shown(), "asks the user first");
  const load = () => Promise.resolve([TOOL]);
  servers.replace([{
    name: "far",
    origin: "registry",
    kind: "http",
    blocked: () => undefined,
    load,
  }]);
  assert.equal(await shown(), "runs");
});
