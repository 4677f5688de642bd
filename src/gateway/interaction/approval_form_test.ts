import assert from "node:assert/strict";
import { YES_OR_NO } from "../../protocol/answers.ts";
import type { Question } from "../../protocol/call.ts";
import { type JsonObject, objectOf } from "../../core/json.ts";
import { approvalResult } from "./approval_form.ts";

const FORMS: JsonObject = { elicitation: { form: {} } };
const QUESTION: Question = {
  handle: "h",
  text: "Run it?",
  answers: YES_OR_NO,
  suggested: "Yes",
  terminalOnly: false,
};

/** Returns the field of the form that a client gets, and the names of the fields it must fill in. */
function fieldOf(question: Question, capabilities: JsonObject) {
  const { inputRequests } = approvalResult(question, capabilities);
  const { params } = objectOf(objectOf(inputRequests).approval);
  const { properties, required } = objectOf(objectOf(params).requestedSchema);
  return { answer: objectOf(objectOf(properties).answer), required };
}

Deno.test("the form of an approval request shows the suggested answer as chosen", () => {
  for (const suggested of ["Yes", "No"] as const) {
    const declared: JsonObject[] = [{}, { form: {} }, { form: { applyDefaults: false } }];
    for (const elicitation of declared) {
      const { answer, required } = fieldOf({ ...QUESTION, suggested }, { elicitation });
      assert.equal(answer.default, suggested);
      assert.deepEqual(required, ["answer"]);
    }
  }
});

Deno.test("a client that fills in defaults itself gets a form without one", () => {
  const { answer, required } = fieldOf(QUESTION, {
    elicitation: { form: { applyDefaults: true } },
  });
  assert.equal("default" in answer, false);
  assert.deepEqual(required, ["answer"]);
  assert.deepEqual(answer.enum, fieldOf(QUESTION, FORMS).answer.enum);
});
