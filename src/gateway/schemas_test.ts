import assert from "node:assert/strict";
import { type Call, type Outcome, textResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { schemaGate, Schemas } from "./schemas.ts";

const schema: JsonObject = {
  type: "object",
  properties: {
    path: { type: "string" },
    head: { type: "integer", minimum: 1 },
    edits: { type: "array", items: { type: "object", required: ["oldText"] } },
  },
  required: ["path"],
  additionalProperties: false,
};

function call(args: JsonObject): Call {
  return {
    id: toolId("s", "t"),
    arguments: args,
    via: "test",
    actor: "local",
    signal: new AbortController().signal,
    callId: "1",
  };
}

function gate(outputSchema: JsonObject | undefined, outcome: Outcome) {
  const ran: string[] = [];
  const definition = { name: "t", inputSchema: schema, ...(outputSchema && { outputSchema }) };
  const callTool = schemaGate(new Schemas(), () => Promise.resolve(definition))((passed) => {
    ran.push(passed.id);
    return Promise.resolve(outcome);
  });
  return { callTool, ran };
}

Deno.test("schemaGate() refuses bad arguments with the place and the reason, and runs nothing", async () => {
  const table: readonly (readonly [JsonObject, RegExp])[] = [
    [{}, /there is no required property "path"/],
    [{ path: 1 }, /path: Instance type "number" is invalid/],
    [{ path: "x", pat: 1 }, /"pat" is unknown/],
    [{ path: "x", head: 0 }, /head: 0 is less than 1/],
    [{ path: "x", edits: [{}] }, /edits\.0: there is no|edits\.0/],
  ];
  for (const [args, message] of table) {
    const { callTool, ran } = gate(undefined, { kind: "result", result: textResult("") });
    await assert.rejects(callTool(call(args)), (error) => {
      assert.ok(error instanceof PmlError && error.code === "BAD_ARGUMENTS");
      assert.match(error.message, message);
      return true;
    });
    assert.deepEqual(ran, []);
  }
});

Deno.test("schemaGate() refuses a result that breaks the tool's own output schema", async () => {
  const output = { type: "object", required: ["n"] };
  const result = (structuredContent: unknown): Outcome => ({
    kind: "result",
    result: { ...textResult(""), structuredContent },
  });
  await assert.rejects(
    gate(output, result({})).callTool(call({ path: "x" })),
    (error) => error instanceof PmlError && error.code === "OUTPUT_INVALID",
  );
  assert.equal(
    (await gate(output, result({ n: 1 })).callTool(call({ path: "x" }))).kind,
    "result",
  );
  const failed: Outcome = { kind: "result", result: { ...textResult("no"), isError: true } };
  assert.equal(await gate(output, failed).callTool(call({ path: "x" })), failed);
});

Deno.test("schemaGate() refuses what is no result of MCP, whatever the tool promised", async () => {
  const bad: Outcome = { kind: "result", result: { content: [{ type: "hologram" }] } };
  await assert.rejects(
    gate(undefined, bad).callTool(call({ path: "x" })),
    (error) => error instanceof PmlError && error.code === "OUTPUT_INVALID",
  );
});

Deno.test("Schemas refuses a schema that could hold the gateway up, before a value is checked", async () => {
  const slow = { type: "object", properties: { a: { type: "string", pattern: "^(a|a)*$" } } };
  await assert.rejects(
    new Schemas().validator(slow),
    (error) => error instanceof PmlError && error.code === "UPSTREAM_PROTOCOL",
  );
});
