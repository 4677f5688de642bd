import assert from "node:assert/strict";
import { assertQuick } from "../../tests/kit/wait.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { exampleArguments } from "./_tool_page.ts";

const NONE = { workspace: "/none", isNew: false };

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
  assert.deepEqual(exampleArguments({ name: "t", inputSchema }, { workspace, isNew: false }), {
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
  const path = {
    type: "object",
    required: ["path"],
    properties: { path: { type: "string" } },
  } as const;
  const pathFor = (name: string, isNew = false) =>
    exampleArguments({ name, inputSchema: path }, { workspace, isNew }).path;
  assert.equal(pathFor("read_file"), `${workspace}/b.txt`);
  assert.equal(pathFor("list_directory"), workspace);
  assert.equal(pathFor("search_files"), workspace);
  // A tool that may write gets the path of nothing that exists.
  assert.equal(pathFor("write_file", true), `${workspace}/example.txt`);
  assert.equal(pathFor("create_directory", true), `${workspace}/example`);
  Deno.removeSync(workspace, { recursive: true });
});

Deno.test("exampleArguments() returns no arguments for a schema without any, and ends in a schema of itself", () => {
  assert.deepEqual(exampleArguments({ name: "t", inputSchema: { type: "object" } }, NONE), {});
  const deep: Record<string, unknown> = { type: "object", required: ["next"] };
  deep.properties = { next: deep };
  const inputSchema = deep as ToolDefinition["inputSchema"];
  assert.ok(JSON.stringify(exampleArguments({ name: "t", inputSchema }, NONE)).length < 200);
});

Deno.test("exampleArguments() takes little time if a schema requires one name many times", async () => {
  let schema: Record<string, unknown> = { type: "string" };
  for (let depth = 0; depth < 4; depth++) {
    schema = { type: "object", properties: { a: schema }, required: Array(40).fill("a") };
  }
  const inputSchema = schema as ToolDefinition["inputSchema"];
  await assertQuick(200, () => exampleArguments({ name: "t", inputSchema }, NONE));
});
