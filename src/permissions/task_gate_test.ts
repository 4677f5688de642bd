import assert from "node:assert/strict";
import type { Call, Verdict } from "../core/call.ts";
import { toolId } from "../core/tool_id.ts";
import { judgeGate } from "./gate.ts";

async function verdictOf(kind: Verdict["kind"], method: string): Promise<string | undefined> {
  let seen: Verdict | undefined;
  const gate = judgeGate(() => (_, args) => {
    assert.equal(args, undefined, "the id of a task is no argument of its tool");
    return { kind, rule: "a rule", source: "test" };
  });
  const call: Call = {
    id: toolId("far", "slow"),
    method,
    arguments: { taskId: "x" },
    via: method,
    actor: "local",
    callId: "1",
    signal: new AbortController().signal,
  };
  await gate((judged) => {
    seen = judged.verdict;
    return Promise.resolve({ kind: "result", result: { content: [] } });
  })(call);
  return seen?.kind;
}

Deno.test("judgeGate() asks nothing about a task that was begun, and a later deny stops all but its cancel", async () => {
  assert.equal(await verdictOf("ask", "tasks/get"), "allow");
  assert.equal(await verdictOf("allow", "tasks/result"), "allow");
  assert.equal(await verdictOf("deny", "tasks/get"), "deny");
  assert.equal(await verdictOf("deny", "tasks/cancel"), "allow");
});
