import assert from "node:assert/strict";
import type { Call } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { toolId } from "../core/tool_id.ts";
import { cloudCall } from "./rpc.ts";

const CALL: Call = {
  id: toolId("tavily", "search"),
  arguments: { query: "CANARY" },
  via: "call",
  actor: "local",
  signal: new AbortController().signal,
  callId: "c1",
};

Deno.test("cloudCall() asks for a key where there is none", async () => {
  for (const key of [undefined, ""]) {
    await assert.rejects(cloudCall(() => key)(CALL), (error) => {
      assert.ok(error instanceof PmlError);
      assert.equal(error.code, "CLOUD_KEY_REQUIRED");
      assert.equal(error.message, "Cloud mode requires PML_API_KEY");
      assert.match(error.hint ?? "", /"tavily:search".*set PML_API_KEY/);
      return true;
    });
  }
});

Deno.test("cloudCall() says with a key that the cloud cannot be reached yet, and shows no key", async () => {
  await assert.rejects(cloudCall(() => "key-of-the-person")(CALL), (error) => {
    assert.ok(error instanceof PmlError);
    assert.equal(error.code, "UPSTREAM_DOWN");
    assert.equal(error.detail?.may_have_run, false);
    assert.doesNotMatch(JSON.stringify(error) + error.message, /key-of-the-person|CANARY/);
    return true;
  });
});

Deno.test({
  name: "cloudCall() touches neither network nor files",
  permissions: "none",
  fn: async () => {
    await assert.rejects(cloudCall(() => "k")(CALL), { code: "UPSTREAM_DOWN" });
  },
});
