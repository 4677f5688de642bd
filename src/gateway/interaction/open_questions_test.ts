import assert from "node:assert/strict";
import type { ApprovalAnswer, Question } from "../../protocol/call.ts";
import { OpenQuestions } from "./open_questions.ts";

const QUESTION: Question = {
  handle: "the-handle",
  text: "PML asks: may it run?",
  answers: [{ reply: "Yes" }, { reply: "No" }],
  suggested: "Yes",
  terminalOnly: false,
};
const SIGNAL = new AbortController().signal;

/** Returns questions with a clock that the test sets. */
function questionsAt(now: number) {
  const clock = { time: now, now: () => clock.time };
  const answers: ApprovalAnswer[] = [];
  const host = {
    waitMs: () => 10_000,
    onAnswer: (answer: ApprovalAnswer) => void answers.push(answer),
  };
  return { questions: new OpenQuestions(host, clock), clock, answers };
}

/** Asks in a form that stays open, and returns the id of the question. */
function openForm(questions: OpenQuestions) {
  const form = Promise.withResolvers<ApprovalAnswer | undefined>();
  let signal: AbortSignal | undefined;
  const answer = questions.askBoth(QUESTION, {
    info: undefined,
    signal: SIGNAL,
    ask: (own) => {
      signal = own;
      return form.promise;
    },
  });
  return {
    form,
    answer,
    isWithdrawn: () => signal?.aborted,
    id: questions.listOpen()[0]?.id ?? "",
  };
}

Deno.test("an answer on the page ends the wait, and withdraws the form", async () => {
  const { questions, clock } = questionsAt(1_000);
  const { answer, isWithdrawn, id } = openForm(questions);
  clock.time += 300;
  assert.equal(questions.answer(id, "Yes"), undefined);
  assert.deepEqual(await answer, { handle: "the-handle", reply: "Yes", channel: "page" });
  assert.equal(isWithdrawn(), true);
  assert.deepEqual(questions.listOpen(), []);
});

Deno.test("an answer on the page has no effect after another answer", async () => {
  const { questions, clock } = questionsAt(1_000);
  const first = openForm(questions);
  first.form.resolve({ handle: "the-handle", reply: "No" });
  assert.equal((await first.answer)?.reply, "No");
  clock.time += 1_000;
  assert.equal(questions.answer(first.id, "Yes"), "over");
  const second = openForm(questions);
  clock.time += 1_000;
  assert.equal(questions.answer(second.id, "Yes"), undefined);
  assert.equal(questions.answer(second.id, "No"), "over");
  assert.equal((await second.answer)?.reply, "Yes");
});

Deno.test("the page cannot give an answer that the question does not offer", () => {
  const { questions, clock } = questionsAt(1_000);
  const { id } = openForm(questions);
  clock.time += 1_000;
  for (const reply of ["Always", "Session", "Reads", "All", "Never", "cancelled"] as const) {
    assert.equal(questions.answer(id, reply), "not offered");
  }
});

Deno.test("an answer on the page within 300 ms has no effect, and the question stays open", () => {
  const { questions, clock } = questionsAt(1_000);
  const { id } = openForm(questions);
  clock.time += 299;
  assert.equal(questions.answer(id, "Yes"), "too soon");
  assert.equal(questions.listOpen().length, 1);
});

Deno.test("a client that brings a late answer gets the earlier one of the page", () => {
  const { questions, clock, answers } = questionsAt(1_000);
  questions.addSent(QUESTION, undefined);
  const [{ id } = { id: "" }] = questions.listOpen();
  clock.time += 1_000;
  assert.equal(questions.answer(id, "Yes"), undefined);
  assert.deepEqual(questions.listOpen(), []);
  assert.equal(answers.length, 1);
  const late = questions.take({ handle: "the-handle", reply: "cancelled" });
  assert.deepEqual([late.reply, late.channel], ["Yes", "page"]);
  const again = questions.take({ handle: "the-handle", reply: "cancelled" });
  assert.equal(again.reply, "cancelled");
});

Deno.test("a refusal in the client counts after a yes on the page, because nothing has run", () => {
  const { questions, clock } = questionsAt(1_000);
  questions.addSent(QUESTION, undefined);
  const [{ id } = { id: "" }] = questions.listOpen();
  clock.time += 1_000;
  questions.answer(id, "Yes");
  assert.equal(questions.take({ handle: "the-handle", reply: "No" }).reply, "No");
});

Deno.test("a question to which a client brings no answer expires", () => {
  const { questions, clock } = questionsAt(1_000);
  questions.addSent(QUESTION, undefined);
  clock.time += 10_001;
  assert.deepEqual(questions.listOpen(), []);
});
