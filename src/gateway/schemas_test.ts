import assert from "node:assert/strict";
import { isCallToolResult } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { assertQuick } from "../../tests/kit/wait.ts";
import { passCall, serverDouble } from "../core/_server_double_test.ts";
import { type Call, type Outcome, textResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { OwnSchemas } from "../core/own_schemas.ts";
import { toolId } from "../core/tool_id.ts";
import { isPlain, schemaGate, Schemas } from "./schemas.ts";

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

const own = new OwnSchemas();

/** A gate before a tool, of a module if nothing else is given. */
function gate(outcome: Outcome, { checksArguments = false } = {}) {
  const ran: string[] = [];
  const output = { type: "object", required: ["n"] };
  const definition = { name: "t", inputSchema: schema, outputSchema: output };
  const gated = schemaGate(new Schemas())((passed) => {
    ran.push(passed.id);
    return Promise.resolve(outcome);
  });
  const server = serverDouble("s", {
    checksArguments,
    wrongArguments: (call, { inputSchema }) => own.wrong(inputSchema, call.arguments),
  });
  const callTool = (given: Call) =>
    gated(passCall(given, { server, definition: () => Promise.resolve(definition) }));
  return { callTool, ran };
}

const fine: Outcome = { kind: "result", result: textResult("") };

Deno.test("schemaGate() refuses bad arguments with the place and the reason, and runs nothing", async () => {
  const table: readonly (readonly [JsonObject, RegExp])[] = [
    [{}, /: Missing argument: path$/],
    [{ path: 1 }, /: path: the value is of type number, not string$/],
    [{ path: "x", pat: 1 }, /: "pat" is unknown$/],
    [{ path: "x", head: 0 }, /: head: 0 is less than 1$/],
    [{ path: "x", edits: [{}] }, /: edits\.0: Missing argument: oldText$/],
  ];
  for (const [args, message] of table) {
    const { callTool, ran } = gate(fine);
    await assert.rejects(callTool(call(args)), (error) => {
      assert.ok(error instanceof PmlError && error.code === "BAD_ARGUMENTS");
      assert.match(error.message, message);
      assert.match(error.hint ?? "", /^Call it as t\(path: string, head\?: number, edits\?: /);
      return true;
    });
    assert.deepEqual(ran, []);
  }
});

Deno.test("schemaGate() changes nothing for a server that checks its own arguments", async () => {
  const result = { content: [{ type: "hologram" }], structuredContent: { m: "1" } };
  const outcome: Outcome = { kind: "result", result };
  const { callTool, ran } = gate(outcome, { checksArguments: true });
  assert.equal(await callTool(call({ path: 1, more: null })), outcome);
  assert.deepEqual(ran, ["s:t"]);
});

Deno.test("Schemas.arguments() returns undefined at once where nothing has to be checked", () => {
  const server = serverDouble("s", { checksArguments: true });
  const tool = { server, definition: { name: "t", inputSchema: schema } };
  assert.equal(new Schemas().arguments(call({}), tool), undefined);
});

Deno.test("schemaGate() refuses what is no result of MCP, whatever the tool promised", async () => {
  const bad: Outcome = { kind: "result", result: { content: [{ type: "hologram" }] } };
  await assert.rejects(
    gate(bad).callTool(call({ path: "x" })),
    (error) => error instanceof PmlError && error.code === "OUTPUT_INVALID",
  );
});

Deno.test("schemaGate() refuses many bad blocks as soon as one", async () => {
  const content = Array.from({ length: 50_000 }, () => ({ type: "hologram" }));
  const bad: Outcome = { kind: "result", result: { content } };
  const { callTool } = gate(bad);
  await assert.rejects(callTool(call({ path: "x" })));
  await assertQuick(
    100,
    () => assert.rejects(callTool(call({ path: "x" })), /no result of MCP/),
  );
});

Deno.test("A result that is taken without the SDK is one that the SDK takes, too", () => {
  const odd = fc.constantFrom<unknown>(1, "x", null, {}, [], { a: 1 }, undefined);
  const block = fc.record({
    type: fc.constantFrom<unknown>("text", "image", "resource", 1),
    text: fc.oneof(fc.string(), odd),
    annotations: odd,
    data: fc.constantFrom("AAAA", "?"),
    _meta: odd,
  }, { requiredKeys: ["type"] });
  const result = fc.record({
    content: fc.oneof(fc.array(block, { maxLength: 3 }), odd),
    isError: fc.constantFrom<unknown>(true, false, 1),
    structuredContent: odd,
    _meta: odd,
  }, { requiredKeys: ["content"] });
  let plain = 0;
  fc.assert(
    fc.property(result, (given) => {
      const said = JSON.parse(JSON.stringify(given));
      if (!isPlain(said)) return;
      plain++;
      assert.ok(isCallToolResult(said), JSON.stringify(said));
    }),
    { numRuns: 5_000, seed: 7 },
  );
  assert.ok(plain > 50, `${plain} were plain`);
});
