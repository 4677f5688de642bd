import assert from "node:assert/strict";
import { toolId } from "../core/tool_id.ts";
import { isRisky } from "./risky.ts";

Deno.test("isRisky() returns true for destructive tools and for the tool that runs commands", () => {
  const go = toolId("fs", "go");
  assert.equal(isRisky(go, { annotations: { destructiveHint: true, readOnlyHint: true } }), true);
  assert.equal(isRisky(go, { annotations: { destructiveHint: false } }), false);
  assert.equal(isRisky(go, {}), false);
  assert.equal(isRisky(toolId("shell", "exec"), {}), true);
});
