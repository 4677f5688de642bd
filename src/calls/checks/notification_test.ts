import assert from "node:assert/strict";
import { serverDouble } from "../../servers/_server_double_test.ts";
import { toolId } from "../../core/tool_id.ts";
import { ALLOW, ASK, newCall, resolvedContext } from "../_context_test.ts";
import { notificationNeedsNoQuestion } from "./notification.ts";

const CALL = newCall({
  id: toolId("fs", "@method(notes/changed)"),
  method: "notes/changed",
  isNotification: true,
});

Deno.test("a notification passes only if a rule allows it and its server is approved", async () => {
  const check = notificationNeedsNoQuestion;
  assert.throws(() => check(resolvedContext(CALL, { verdict: ASK })), {
    code: "APPROVAL_REQUIRED",
    hint: /"fs:@method\(notes\/changed\)"/,
  });
  const unapproved = {
    code: "APPROVAL_REQUIRED" as const,
    facts: [],
    accept: () => assert.fail("the user was not asked"),
  };
  const server = serverDouble("fs", { unapproved: () => Promise.resolve(unapproved) });
  await assert.rejects(async () => await check(resolvedContext(CALL, { verdict: ALLOW, server })), {
    code: "APPROVAL_REQUIRED",
    message: /server is not approved/,
  });
  assert.equal(await check(resolvedContext(CALL, { verdict: ALLOW })), undefined);
});

Deno.test("the check of notifications ignores requests", () => {
  const { isNotification: _, ...request } = CALL;
  assert.equal(notificationNeedsNoQuestion(resolvedContext(request, { verdict: ASK })), undefined);
});
