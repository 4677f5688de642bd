import assert from "node:assert/strict";
import { YES_OR_NO } from "../../protocol/answers.ts";
import { serverDouble } from "../../servers/_server_double_test.ts";
import type { Outcome } from "../../protocol/call.ts";
import { ALLOW, ASK, newCall, resolvedContext } from "../_context_test.ts";
import { completionNeedsNoQuestion, withoutCompletionQuestion } from "./completion.ts";

const COMPLETION = newCall({ method: "completion/complete" });
const NO_VALUES = { kind: "result", result: { completion: { values: [], hasMore: false } } };
const QUESTION: Outcome = {
  kind: "ask",
  question: { handle: "h", text: "?", answers: YES_OR_NO, suggested: "Yes", terminalOnly: false },
};

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
  const unknown = serverDouble("new", { unapproved: () => Promise.resolve(unapproved()) });
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
