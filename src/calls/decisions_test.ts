import assert from "node:assert/strict";
import { ALLOW, ASK, DENY, newCall } from "./_context_test.ts";
import type { Verdict } from "../protocol/verdict.ts";
import { toolId } from "../core/tool_id.ts";
import { assertNotDenied, decisionOf } from "./decisions.ts";

function verdictOf(kind: Verdict["kind"], method: string): string {
  const call = newCall({
    id: toolId("far", "slow"),
    method,
    arguments: { taskId: "x" },
    via: method,
  });
  return decisionOf(
    (_, args) => {
      assert.equal(args, undefined, "the id of a task is no argument of its tool");
      return { kind, rule: "a rule", source: "test" };
    },
    call,
    undefined,
  ).kind;
}

Deno.test("judged() asks nothing about a task that was begun, and a later deny stops all but its cancel", () => {
  assert.equal(verdictOf("ask", "tasks/get"), "allow");
  assert.equal(verdictOf("allow", "tasks/result"), "allow");
  assert.equal(verdictOf("deny", "tasks/get"), "deny");
  assert.equal(verdictOf("deny", "tasks/cancel"), "allow");
});

Deno.test("judged() has the rules decide about other methods that begin with tasks/", () => {
  const call = newCall({ id: toolId("fs", "@method(tasks/other)"), method: "tasks/other" });
  assert.equal(decisionOf(() => ASK, call, undefined), ASK);
});

Deno.test("judged() lets notifications of servers to clients pass where no rule names them", () => {
  const id = toolId("fs", "@method(notes/changed)");
  const told = newCall({ id, method: "notes/changed", via: "server", isNotification: true });
  const open: Verdict = { kind: "ask", rule: "no rule", source: "defaults" };
  assert.equal(decisionOf(() => open, told, undefined).kind, "allow");
  const asks: Verdict = { ...open, source: "/w/.pml.json" };
  for (const verdict of [asks, DENY]) {
    assert.equal(decisionOf(() => verdict, told, undefined), verdict);
  }
  for (const other of [{ via: "notes/changed" }, { isNotification: false }]) {
    assert.equal(decisionOf(() => open, { ...told, ...other }, undefined), open);
  }
});

Deno.test("refuse() throws for a denied call, and lets others pass", () => {
  assert.throws(() => assertNotDenied(newCall({ verdict: DENY })), { code: "PERMISSION_DENIED" });
  for (const verdict of [ASK, ALLOW]) assertNotDenied(newCall({ verdict }));
  assertNotDenied(newCall());
});

Deno.test("judged() uses the rules, and overrides the decision of a call", () => {
  for (const verdict of [ASK, DENY]) {
    assert.equal(decisionOf(() => verdict, newCall({ verdict: ALLOW }), undefined), verdict);
  }
});

Deno.test("judged() lets the rules see the arguments", () => {
  const seen: unknown[] = [];
  const judge = (...said: unknown[]) => {
    seen.push(said);
    return ASK;
  };
  decisionOf(judge, newCall(), undefined);
  assert.deepEqual(seen, [["fs:write", { path: "a" }]]);
});
