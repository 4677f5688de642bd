import assert from "node:assert/strict";
import { answerLabel, answersInForm, type OfferedAnswer, replyOfLabel } from "./answers.ts";

const ALL: readonly OfferedAnswer[] = [
  { reply: "Yes" },
  { reply: "Session" },
  { reply: "Always" },
  { reply: "Reads", tools: 12 },
  { reply: "All", tools: 3 },
  { reply: "No" },
];

Deno.test("replyOfLabel() returns the reply of each name, and unoffered for any other value", () => {
  for (const answer of ALL) assert.equal(replyOfLabel(answerLabel(answer)), answer.reply);
  const others = [
    "",
    "yes",
    "Never",
    "cancelled",
    "Session",
    "Reads",
    "Always for these tools",
    undefined,
    1,
  ];
  for (const other of [...others, ["Yes"], {}, true]) {
    assert.equal(replyOfLabel(other), "unoffered");
  }
});

Deno.test("a form never shows Never, so no client can send it by mistake", () => {
  assert.deepEqual(answersInForm([...ALL, { reply: "Never" }]), ALL);
});
