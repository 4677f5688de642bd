import assert from "node:assert/strict";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { NO_CLIENT, type Outcome, textResult } from "../protocol/call.ts";
import { ToolCaller } from "./_tool_caller.ts";
import type { GatewayHost } from "./options.ts";

Deno.test("a large result is delivered whole if its server ended after the call", async () => {
  const outcome: Outcome = { kind: "result", result: textResult("x".repeat(1_000)) };
  const host: Record<string, unknown> = {
    settings: () => ({ inlineBytes: 100, actor: "local", metaTools: ["call"] }),
    servers: { definition: () => Promise.reject(new PmlError("UPSTREAM_DOWN", "it ended")) },
    workflow: () => assert.fail("nothing was to be stored"),
  };
  const caller = new ToolCaller(
    host as unknown as GatewayHost, // nothing else is used
    () => Promise.resolve(outcome),
  );
  const scope = { cancellation: new Cancellation(), client: NO_CLIENT, answer: undefined };
  const request = { arguments: {}, scope, via: "call" };
  assert.equal(await caller.call(toolId("s", "t"), request), outcome);
});

/**
 * Calls a tool of the server `app`, one of whose tools has a page. Returns the text of the result.
 */
async function textOf(via: string, able: JsonObject, settings: object = {}): Promise<string> {
  const tool = { name: "t", inputSchema: {}, _meta: { ui: { resourceUri: "ui://app/page" } } };
  const entry = { id: toolId("app", "t"), tool, server: { name: "app", origin: "file" } };
  const stored = { uri: "pml://results/x", text: "short" };
  const shown = { inlineBytes: 100, actor: "local", metaTools: ["call"], exposure: "hybrid" };
  const host: Record<string, unknown> = {
    settings: () => ({ ...shown, hybrid: { exposeMetaTools: true }, ...settings }),
    servers: { definition: () => Promise.resolve(tool) },
    catalog: { list: () => [entry] },
    workflow: () => Promise.resolve({ largeResults: { keep: () => Promise.resolve(stored) } }),
  };
  const result = textResult("x".repeat(1_000));
  const caller = new ToolCaller(
    host as unknown as GatewayHost, // nothing else is used
    () => Promise.resolve({ kind: "result", result }),
  );
  const scope = {
    cancellation: new Cancellation(),
    client: { capabilities: able },
    answer: undefined,
  };
  const outcome = await caller.call(toolId("app", "t"), { arguments: {}, scope, via });
  assert.ok(outcome.kind === "result");
  return String(outcome.result.content[0]?.text);
}

Deno.test("a result that a page may read stays whole", async () => {
  const pages = { extensions: { "io.modelcontextprotocol/ui": {} } };
  assert.equal((await textOf("tools/call", pages)).length, 1_000);
  assert.equal(await textOf("tools/call", {}), "short");
  assert.equal(await textOf("call", pages), "short");
});

Deno.test("a result stays whole for a client without a tool that reads on", async () => {
  const lists = [
    { exposure: "full_proxy" },
    { hybrid: { exposeMetaTools: false } },
    { metaTools: ["search", "batch", "execute_code"] },
    { inlineBytes: 0 },
    { inlineBytes: 1_000 },
  ];
  for (const settings of lists) {
    assert.equal((await textOf("batch", {}, settings)).length, 1_000, JSON.stringify(settings));
  }
  assert.equal(await textOf("batch", {}, { metaTools: ["batch", "execute_workflow"] }), "short");
});
