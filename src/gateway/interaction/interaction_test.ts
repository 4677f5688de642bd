import assert from "node:assert/strict";
import { YES_OR_NO } from "../../protocol/answers.ts";
import { type Question, textResult } from "../../protocol/call.ts";
import { Cancellation } from "../../core/cancellation.ts";
import { PmlError } from "../../core/errors.ts";
import type { JsonObject } from "../../core/json.ts";
import type { ClientRequest } from "./request_client.ts";
import { Interaction, type MakeCalls } from "./interaction.ts";

const QUESTION: Question = {
  handle: "h",
  text: "Run it?",
  answers: YES_OR_NO,
  suggested: "Yes",
  terminalOnly: false,
};
const FORMS: JsonObject = { elicitation: { form: {} } };
const YES: JsonObject = { action: "accept", content: { answer: "Yes" } };

interface Parts {
  readonly isStateless?: boolean;
  readonly capabilities?: JsonObject;
  readonly owner?: object;
  readonly requestState?: string;
  readonly inputResponses?: JsonObject;
}

/** Returns a request, and the methods that its client is asked. The client says yes. */
function requestOf({ isStateless = true, capabilities = FORMS, owner = {}, ...state }: Parts) {
  const sent: string[] = [];
  const ask = (method: string) => {
    sent.push(method);
    return Promise.resolve(YES);
  };
  const context = { method: "tools/call", cancellation: new Cancellation(), ask, ...state };
  const request = { client: { isStateless, owner }, context, params: {}, capabilities };
  return { sent, request: request as unknown as ClientRequest }; // nothing else is read
}

function interaction(asksClient = true): Interaction {
  const host = {
    settings: () => ({ asksClient, asksPage: false, approvalMs: 60_000 }),
    storeQuestion: () =>
      Promise.resolve(new PmlError("APPROVAL_REQUIRED", "left for the terminal")),
  };
  const gateway = { replica: undefined, dropped: { reportServerMembers: () => {} } };
  return new Interaction(host, gateway, () => assert.fail("no server asks"));
}

/** Makes a call that needs an approval. Returns a result with the answer. */
function callNeeding(question: Question): MakeCalls {
  return ({ answer }) =>
    Promise.resolve(
      answer === undefined
        ? { kind: "ask", question }
        : { kind: "result", result: textResult(`${answer.reply} to ${answer.handle}`) },
    );
}

const [APPROVED] = textResult("Yes to h").content;

Deno.test("an approval request goes to a client that can show it, else to the terminal", async () => {
  using open = interaction();
  using closed = interaction(false);
  const waiting = requestOf({ isStateless: false });
  assert.deepEqual((await open.serve(waiting.request, callNeeding(QUESTION))).content, [APPROVED]);
  assert.deepEqual(waiting.sent, ["elicitation/create"]);
  const result = await open.serve(requestOf({}).request, callNeeding(QUESTION));
  assert.deepEqual([result.resultType, result.requestState], ["input_required", "h"]);
  for (const isStateless of [false, true]) {
    const { request, sent } = requestOf({ isStateless });
    const without = requestOf({ isStateless, capabilities: {} }).request;
    const long = { ...QUESTION, terminalOnly: true };
    const left = { code: "APPROVAL_REQUIRED" };
    await assert.rejects(closed.serve(request, callNeeding(QUESTION)), left);
    await assert.rejects(open.serve(request, callNeeding(long)), left);
    await assert.rejects(open.serve(without, callNeeding(QUESTION)), left);
    assert.deepEqual(sent, []);
  }
});

Deno.test("an approval request counts as answered only by the owner that received it", async () => {
  using open = interaction();
  const [owner, inputResponses] = [{}, { approval: YES }];
  await open.serve(requestOf({ owner }).request, callNeeding(QUESTION));
  const repeated = { requestState: "h", inputResponses };
  const stranger = await open.serve(requestOf(repeated).request, callNeeding(QUESTION));
  assert.doesNotMatch(JSON.stringify(stranger.content), /to h/);
  const own = await open.serve(requestOf({ ...repeated, owner }).request, callNeeding(QUESTION));
  assert.deepEqual(own.content, [APPROVED]);
});

Deno.test("equal approval requests of one owner are sent once, and share the reply", async () => {
  using open = interaction();
  const owner = {};
  const [one, other] = ["one", "other"].map((handle) => ({ ...QUESTION, handle, shared: "same" }));
  assert.ok(one !== undefined && other !== undefined);
  const sent = await open.serve(requestOf({ owner }).request, callNeeding(one));
  const second = open.serve(requestOf({ owner }).request, callNeeding(other));
  const elsewhere = await open.serve(requestOf({}).request, callNeeding(other));
  assert.deepEqual([sent.requestState, elsewhere.requestState], ["one", "other"]);
  const answered = { owner, requestState: "one", inputResponses: { approval: YES } };
  await open.serve(requestOf(answered).request, callNeeding(one));
  assert.deepEqual((await second).content, textResult("Yes to other").content);
});
