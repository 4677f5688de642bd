import assert from "node:assert/strict";
import type { Call, Verdict } from "../core/call.ts";
import { toolId } from "../core/tool_id.ts";
import { judged } from "./gate.ts";

function verdictOf(kind: Verdict["kind"], method: string): string {
  const call: Call = {
    id: toolId("far", "slow"),
    method,
    arguments: { taskId: "x" },
    via: method,
    actor: "local",
    callId: "1",
    signal: new AbortController().signal,
  };
  return judged((_, args) => {
    assert.equal(args, undefined, "the id of a task is no argument of its tool");
    return { kind, rule: "a rule", source: "test" };
  }, call).kind;
}

Deno.test("judged() asks nothing about a task that was begun, and a later deny stops all but its cancel", () => {
  assert.equal(verdictOf("ask", "tasks/get"), "allow");
  assert.equal(verdictOf("allow", "tasks/result"), "allow");
  assert.equal(verdictOf("deny", "tasks/get"), "deny");
  assert.equal(verdictOf("deny", "tasks/cancel"), "allow");
});
