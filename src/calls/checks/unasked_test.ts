import assert from "node:assert/strict";
import { YES_OR_NO } from "../../protocol/answers.ts";
import { serverDouble } from "../../servers/_server_double_test.ts";
import type { Outcome } from "../../protocol/call.ts";
import { ALLOW, ASK, newCall, resolvedContext } from "../_context_test.ts";
import {
  completionNeedsNoQuestion,
  notificationNeedsNoQuestion,
  withoutCompletionQuestion,
} from "./unasked.ts";
import { toolId } from "../../core/tool_id.ts";

const COMPLETION = newCall({ method: "completion/complete" });
const NO_VALUES = { kind: "result", result: { completion: { values: [], hasMore: false } } };
const QUESTION: Outcome = {
  kind: "ask",
  question: { handle: "h", text: "?", answers: YES_OR_NO, suggested: "Yes", terminalOnly: false },
};

const NOTIFICATION = newCall({
  id: toolId("fs", "@method(notes/changed)"),
  method: "notes/changed",
  isNotification: true,
});

function unapproved() {
  return {
    code: "APPROVAL_REQUIRED" as const,
    facts: [],
    accept: () => assert.fail("no yes came"),
  };
}

Deno.test("a completion that needs a question returns no values", async () => {
  const check = completionNeedsNoQuestion;
  assert.deepEqual(await check(resolvedContext(COMPLETION, { verdict: ASK })), NO_VALUES);
  const unknown = serverDouble("new", { findUnapproved: () => Promise.resolve(unapproved()) });
  const asked = resolvedContext(COMPLETION, { verdict: ALLOW, server: unknown });
  assert.deepEqual(await check(asked), NO_VALUES);
  assert.equal(await check(resolvedContext(COMPLETION, { verdict: ALLOW })), undefined);
});

Deno.test("other requests are asked about as ever", () => {
  const call = resolvedContext(newCall(), { verdict: ASK });
  assert.equal(completionNeedsNoQuestion(call), undefined);
  assert.equal(withoutCompletionQuestion(call, QUESTION), QUESTION);
  const completion = resolvedContext(COMPLETION, { verdict: ALLOW });
  assert.deepEqual(withoutCompletionQuestion(completion, QUESTION), NO_VALUES);
});

Deno.test("a notification passes only if a rule allows it and its server is approved", async () => {
  const check = notificationNeedsNoQuestion;
  assert.throws(() => check(resolvedContext(NOTIFICATION, { verdict: ASK })), {
    code: "APPROVAL_REQUIRED",
    hint: /"fs:@method\(notes\/changed\)"/,
  });
  const server = serverDouble("fs", { findUnapproved: () => Promise.resolve(unapproved()) });
  await assert.rejects(
    async () => await check(resolvedContext(NOTIFICATION, { verdict: ALLOW, server })),
    {
      code: "APPROVAL_REQUIRED",
      message: /server is not approved/,
    },
  );
  assert.equal(await check(resolvedContext(NOTIFICATION, { verdict: ALLOW })), undefined);
});

Deno.test("the check of notifications ignores requests", () => {
  const { isNotification: _, ...request } = NOTIFICATION;
  assert.equal(notificationNeedsNoQuestion(resolvedContext(request, { verdict: ASK })), undefined);
});
