import assert from "node:assert/strict";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
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
