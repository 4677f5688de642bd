import assert from "node:assert/strict";
import type { ToolDefinition } from "../protocol/tool.ts";
import { appTools } from "./app_tools.ts";
import { Catalog } from "./catalog.ts";

function tool(name: string, ui?: object): ToolDefinition {
  return { name, inputSchema: {}, ...(ui && { _meta: { ui } as never }) };
}

Deno.test("appTools() has the tools for pages of servers with pages, by their names there", () => {
  const catalog = new Catalog();
  const own = tool("own");
  const changes = new Map([[own, { ...own, name: "renamed" }]]);
  const shown = tool("show", { resourceUri: "ui://a", visibility: ["model"] });
  catalog.set({ name: "a", origin: "test" }, [shown, own, tool("both")], { changes });
  const page = tool("both", { resourceUri: "ui://a", visibility: ["app"] });
  catalog.set({ name: "b", origin: "test" }, [page]);
  // Another scheme is no page.
  const foreign = tool("both", { resourceUri: "https://a" });
  catalog.set({ name: "c", origin: "test" }, [foreign, tool("alone", { visibility: ["app"] })]);
  const { servers, byName } = appTools(catalog.list());
  assert.deepEqual([...servers], ["a", "b"]);
  assert.deepEqual(Object.fromEntries(byName), { own: ["a:own"], both: ["a:both", "b:both"] });
  assert.equal(appTools(catalog.list()), appTools(catalog.list()));
});
