import assert from "node:assert/strict";
import { isCallToolResult } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { assertQuick } from "../../tests/kit/wait.ts";
import { passCall, serverDouble } from "../core/_server_double_test.ts";
import { type Call, type Outcome, textResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
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

function gate(
  outputSchema: JsonObject | undefined,
  outcome: Outcome,
  { inputSchema = schema, isChecked = false } = {},
) {
  const ran: string[] = [];
  const definition = { name: "t", inputSchema, ...(outputSchema && { outputSchema }) };
  const gated = schemaGate(new Schemas())((passed) => {
    ran.push(passed.id);
    return Promise.resolve(outcome);
  });
  const server = serverDouble("s", { checksArguments: isChecked });
  const callTool = (given: Call) =>
    gated(passCall(given, { server, definition: () => Promise.resolve(definition) }));
  return { callTool, ran };
}

Deno.test("schemaGate() refuses bad arguments with the place and the reason, and runs nothing", async () => {
  const table: readonly (readonly [JsonObject, RegExp])[] = [
    [{}, /Missing argument: path/],
    [{ path: 1 }, /path: the value is of type number, not string/],
    [{ path: "x", pat: 1 }, /"pat" is unknown/],
    [{ path: "x", head: 0 }, /head: 0 is less than 1/],
    [{ path: "x", edits: [{}] }, /edits\.0: Missing argument: |edits\.0/],
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

const LOOKS_ROUND: JsonObject = {
  type: "object",
  properties: { a: { type: "string", pattern: "^(?=a)b" } },
};
const DOUBLED: JsonObject = JSON.parse(JSON.stringify({
  $defs: Object.fromEntries(Array.from({ length: 40 }, (_, at) => {
    const below = { $ref: `#/$defs/d${at - 1}` };
    return [`d${at}`, at === 0 ? { required: ["x"] } : { anyOf: [below, below] }];
  })),
  $ref: "#/$defs/d39",
}));
const fine: Outcome = {
  kind: "result",
  result: { ...textResult(""), structuredContent: { a: "a" } },
};

Deno.test("schemaGate() refuses a keyword that cannot be checked in arguments of a module", async () => {
  const given = call({ a: "ab" });
  const module = gate(undefined, fine, { inputSchema: LOOKS_ROUND });
  await assert.rejects(
    module.callTool(given),
    (error) =>
      error instanceof PmlError && error.code === "BAD_ARGUMENTS" &&
      /pattern "\^\(\?=a\)b" cannot be checked/.test(error.message),
  );
  assert.deepEqual(module.ran, []);
  // What is not there needs no check.
  assert.equal(await module.callTool(call({})), fine);
});

Deno.test("schemaGate() refuses arguments of a module that take too long to check", async () => {
  const { callTool, ran } = gate(undefined, fine, { inputSchema: DOUBLED });
  await assert.rejects(
    callTool(call({ a: 1 })),
    (error) =>
      error instanceof PmlError && error.code === "BAD_ARGUMENTS" &&
      /it would take too long/.test(error.message),
  );
  assert.deepEqual(ran, []);
});

Deno.test("schemaGate() changes nothing for a server that checks its own arguments", async () => {
  const result = { ...textResult(""), structuredContent: { n: "1" } };
  const outcome: Outcome = { kind: "result", result };
  const output = { type: "object", properties: { n: { type: "number" } } };
  const { callTool, ran } = gate(output, outcome, { isChecked: true });
  assert.equal(await callTool(call({ path: 1, more: null })), outcome);
  assert.deepEqual(ran, ["s:t"]);
});

Deno.test("schemaGate() delivers a result that cannot be checked, and says so", async () => {
  for (const output of [LOOKS_ROUND, DOUBLED]) {
    const outcome = await gate(output, fine).callTool(call({ path: "x" }));
    assert.deepEqual(outcome, { ...fine, isUnchecked: true });
  }
});

Deno.test("Schemas lets others have their turn between checks that take long", async () => {
  const schemas = new Schemas();
  const order: string[] = [];
  const checks = [1, 2, 3].map(() => schemas.check(DOUBLED, {}).then(() => order.push("check")));
  setTimeout(() => order.push("turn"));
  await Promise.all(checks);
  assert.ok(order.indexOf("turn") < 3, order.join());
});

Deno.test("schemaGate() refuses many bad blocks as soon as one", async () => {
  const content = Array.from({ length: 50_000 }, () => ({ type: "hologram" }));
  const bad: Outcome = { kind: "result", result: { content } };
  const { callTool } = gate(undefined, bad);
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
