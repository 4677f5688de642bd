import assert from "node:assert/strict";
import { assertQuick } from "../../tests/kit/wait.ts";
import { newCall, newPipeline } from "./_context_test.ts";
import { argumentsAreAcceptable } from "./checks/arguments.ts";
import { serverDouble } from "../servers/_server_double_test.ts";
import { type Call, type Outcome, textResult } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { OwnSchemas } from "../core/own_schemas.ts";
import { toolId } from "../core/tool_id.ts";
import { Schemas } from "./schemas.ts";

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
  return newCall({ id: toolId("s", "t"), arguments: args, via: "test" });
}

const own = new OwnSchemas();

/** A pipeline with a check of arguments before a tool, of a module if nothing else is given. */
function checked(outcome: Outcome, { checksItself = false } = {}) {
  const ran: string[] = [];
  const output = { type: "object", required: ["n"] };
  const definition = { name: "t", inputSchema: schema, outputSchema: output };
  const schemas = new Schemas();
  const { callTool } = newPipeline({
    server: serverDouble("s", {
      checksItself,
      findWrongArguments: (call, { inputSchema }) => own.findProblem(inputSchema, call.arguments),
    }),
    definition: () => Promise.resolve(definition),
    checks: [argumentsAreAcceptable(schemas)],
    run: ({ id }) => {
      ran.push(id);
      return Promise.resolve(outcome);
    },
    checkResult: ({ id, server }, outcome) => schemas.checkResult(outcome, id, server),
  });
  return { callTool, ran };
}

const fine: Outcome = { kind: "result", result: textResult("") };

Deno.test("Schemas refuse bad arguments with the place and the reason, and nothing runs", async () => {
  const table: readonly (readonly [JsonObject, RegExp])[] = [
    [{}, /: Missing argument: path$/],
    [{ path: 1 }, /: path: .*number, not string$/],
    [{ path: "x", pat: 1 }, /: "pat" is unknown$/],
    [{ path: "x", head: 0 }, /: head: 0 is less than 1$/],
    [{ path: "x", edits: [{}] }, /: edits\.0: Missing argument: oldText$/],
  ];
  for (const [args, message] of table) {
    const { callTool, ran } = checked(fine);
    await assert.rejects(callTool(call(args)), (error) => {
      assert.ok(error instanceof PmlError && error.code === "BAD_ARGUMENTS");
      assert.match(error.message, message);
      assert.match(error.hint ?? "", /^Call it as t\(path, head\?: number, edits\?: /);
      return true;
    });
    assert.deepEqual(ran, []);
  }
});

Deno.test("Schemas change nothing for a server that checks its own arguments", async () => {
  const result = { content: [{ type: "hologram" }], structuredContent: { m: "1" } };
  const outcome: Outcome = { kind: "result", result };
  const { callTool, ran } = checked(outcome, { checksItself: true });
  assert.equal(await callTool(call({ path: 1, more: null })), outcome);
  assert.deepEqual(ran, ["s:t"]);
});

Deno.test("Schemas.checkArguments() returns undefined at once where nothing has to be checked", () => {
  const server = serverDouble("s", { checksItself: true });
  const tool = { server, definition: { name: "t", inputSchema: schema } };
  assert.equal(new Schemas().checkArguments(call({}), tool), undefined);
});

Deno.test("Schemas refuse an invalid MCP result, also of a tool without an output schema", async () => {
  const bad: Outcome = { kind: "result", result: { content: [{ type: "hologram" }] } };
  await assert.rejects(
    checked(bad).callTool(call({ path: "x" })),
    (error) => error instanceof PmlError && error.code === "OUTPUT_INVALID",
  );
});

Deno.test("Schemas refuse many bad blocks as soon as one", async () => {
  const content = Array.from({ length: 50_000 }, () => ({ type: "hologram" }));
  const bad: Outcome = { kind: "result", result: { content } };
  const { callTool } = checked(bad);
  await assert.rejects(callTool(call({ path: "x" })));
  await assertQuick(
    100,
    () => assert.rejects(callTool(call({ path: "x" })), { code: "OUTPUT_INVALID" }),
  );
});
