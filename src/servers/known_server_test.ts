import assert from "node:assert/strict";
import { knownDouble } from "./_server_double_test.ts";
import { type Call, NO_CLIENT, type Outcome, textResult } from "../protocol/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import { KnownServer } from "./known_server.ts";
import type { ListItem } from "../protocol/lists.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { toolId } from "../core/tool_id.ts";

const INTERNAL: ToolDefinition = { name: "hidden", inputSchema: {}, visibility: "internal" };
const LISTED: ToolDefinition = { name: "shown", inputSchema: {} };

class TwoTools extends KnownServer {
  override list(): Promise<readonly ListItem[]> {
    return Promise.resolve([INTERNAL, LISTED] as unknown as readonly ListItem[]);
  }

  override call(): Promise<Outcome> {
    return Promise.resolve({ kind: "result", result: textResult("") });
  }
}

function callOf(tool: string, change: Partial<Call> = {}): Call {
  return {
    ...{ id: toolId("s", tool), arguments: {}, via: "call", actor: "local", callId: "1" },
    ...{ cancellation: new Cancellation(), client: NO_CLIENT },
    ...change,
  };
}

Deno.test("only calls of capabilities find an internal tool, after any other call", async () => {
  const unknown = new PmlError("UNKNOWN_TOOL", "no");
  const server = new TwoTools({
    ...knownDouble("s"),
    find: (id) => {
      if (id === toolId("s", "shown")) return LISTED;
      throw unknown;
    },
  });
  const loaded = async (call: Call) => await server.definitionFor(call);
  for (let turn = 0; turn < 2; turn++) {
    await assert.rejects(loaded(callOf("hidden")), unknown);
    assert.equal(await loaded(callOf("hidden", { via: "capability" })), INTERNAL);
    assert.equal(await loaded(callOf("shown", { via: "capability" })), LISTED);
    await assert.rejects(loaded(callOf("none", { via: "capability" })), unknown);
    assert.equal(server.definitionFor(callOf("shown")), LISTED, "a known tool needs no promise");
  }
});

Deno.test("a request other than tools/call has an empty definition", () => {
  const server = new TwoTools(knownDouble("s"));
  assert.deepEqual(server.definitionFor(callOf("@prompts", { method: "prompts/get" })), {
    name: "prompts/get",
    inputSchema: {},
  });
});
