import assert from "node:assert/strict";
import type { ToolDefinition } from "../protocol/tool.ts";
import { exampleArguments } from "./_tool_page.ts";

Deno.test("exampleArguments() returns the required arguments, with paths that exist", () => {
  const workspace = Deno.makeTempDirSync();
  Deno.writeTextFileSync(`${workspace}/b.txt`, "");
  Deno.writeTextFileSync(`${workspace}/.env`, "");
  const inputSchema: ToolDefinition["inputSchema"] = {
    type: "object",
    required: ["path", "file_name", "url", "mode", "count", "all", "list", "filter", "title"],
    properties: {
      path: { type: "string" },
      file_name: { type: "string" },
      url: { type: "string" },
      mode: { enum: ["fast", "slow"] },
      count: { type: "integer", minimum: 5 },
      all: { type: "boolean" },
      list: { type: "array", items: { type: "string" } },
      filter: {
        type: "object",
        required: ["key"],
        properties: { key: { type: ["string", "null"] } },
      },
      title: { type: "string", default: "mine" },
      optional: { type: "string" },
    },
  };
  assert.deepEqual(exampleArguments({ inputSchema }, workspace), {
    path: workspace,
    file_name: `${workspace}/b.txt`,
    url: "https://example.com/",
    mode: "fast",
    count: 5,
    all: true,
    list: [],
    filter: { key: "example" },
    title: "mine",
  });
  Deno.removeSync(workspace, { recursive: true });
});

Deno.test("exampleArguments() returns no arguments for a schema without any, and ends in a schema of itself", () => {
  assert.deepEqual(exampleArguments({ inputSchema: { type: "object" } }, "/none"), {});
  const deep: Record<string, unknown> = { type: "object", required: ["next"] };
  deep.properties = { next: deep };
  const inputSchema = deep as ToolDefinition["inputSchema"];
  assert.ok(JSON.stringify(exampleArguments({ inputSchema }, "/none")).length < 200);
});
