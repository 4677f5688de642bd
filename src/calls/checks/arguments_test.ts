import assert from "node:assert/strict";
import { serverDouble } from "../../servers/_server_double_test.ts";
import { PmlError } from "../../core/errors.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { newCall, resolvedContext } from "../_context_test.ts";
import type { CallContext } from "../context.ts";
import { argumentsAreAcceptable, type ArgumentSchemas } from "./arguments.ts";

const DEFINITION: ToolDefinition = { name: "write", inputSchema: { type: "object" } };
const REFUSED = new PmlError("BAD_ARGUMENTS", "no");
const NEVER: ArgumentSchemas = { checkArguments: () => assert.fail("a schema was read") };

Deno.test("argumentsAreAcceptable() passes the arguments, the definition and the server on", async () => {
  const server = serverDouble("fs");
  for (const isLate of [false, true]) {
    const call = resolvedContext(newCall(), {
      server,
      definition: () => isLate ? Promise.resolve(DEFINITION) : DEFINITION,
    });
    const seen: unknown[] = [];
    const check = argumentsAreAcceptable({
      checkArguments: (...of) => {
        seen.push(of);
        return undefined;
      },
    });
    const result = check(call);
    assert.equal(result instanceof Promise, isLate, "it waits only for a definition");
    assert.equal(await result, undefined);
    const [[seenCall, tool] = []] = seen as [CallContext, unknown][];
    assert.equal(seenCall, call);
    assert.deepEqual(tool, { definition: DEFINITION, server });
  }
});

Deno.test("argumentsAreAcceptable() refuses arguments that the schema refuses, also later", async () => {
  const call = () => resolvedContext(newCall(), { definition: () => DEFINITION });
  const now = argumentsAreAcceptable({
    checkArguments: () => {
      throw REFUSED;
    },
  });
  assert.throws(() => now(call()), REFUSED);
  const later = argumentsAreAcceptable({ checkArguments: () => Promise.reject(REFUSED) });
  await assert.rejects(async () => await later(call()), REFUSED);
});

Deno.test("argumentsAreAcceptable() refuses headers that differ from the arguments, before the schema is read", () => {
  const seen: ToolDefinition[] = [];
  const assertMatches = (definition: ToolDefinition) => {
    seen.push(definition);
    throw REFUSED;
  };
  const call = resolvedContext(newCall({ assertMatches }), { definition: () => DEFINITION });
  assert.throws(() => argumentsAreAcceptable(NEVER)(call), REFUSED);
  assert.deepEqual(seen, [DEFINITION]);
});

Deno.test("argumentsAreAcceptable() lets requests other than tool calls pass without a definition", () => {
  const definition = () => assert.fail("a definition was loaded");
  const call = resolvedContext(newCall({ method: "prompts/get" }), { definition });
  assert.equal(argumentsAreAcceptable(NEVER)(call), undefined);
});
