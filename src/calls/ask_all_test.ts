import assert from "node:assert/strict";
import { admitted, callOf, house, NO_RULES, resolving, subjectOf } from "./_trust_house_test.ts";
import { serverDouble } from "../servers/_server_double_test.ts";
import type { ApprovalReply } from "../protocol/answers.ts";
import type { Call, Question } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import type { ResolvedCall } from "../servers/server.ts";
import { toolId } from "../core/tool_id.ts";
import { askForAll } from "./ask_all.ts";

type House = Awaited<ReturnType<typeof house>>;

/** Asks for calls of a house; `reply` answers each question. */
function askingAll(
  at: House,
  calls: readonly Call[],
  { reply, look = admitted(at.resolved) }: {
    readonly reply: ApprovalReply;
    readonly look?: (call: Call) => Promise<ResolvedCall>;
  },
) {
  const questions: Question[] = [];
  const asked = askForAll(calls, at.asking, {
    preflight: look,
    assertFits: ({ arguments: { city } }) => {
      if (city === 1) throw new PmlError("BAD_ARGUMENTS", "no");
      return Promise.resolve();
    },
    ask: (question) => {
      questions.push(question);
      at.clock.now += 1_000;
      return Promise.resolve({ handle: question.handle, reply });
    },
  });
  return { asked, questions };
}

function callsTo(...cities: readonly (string | number)[]): readonly Call[] {
  return cities.map((city) => callOf({ arguments: { city } }));
}

Deno.test("askForAll() asks once for several calls and returns an approval for each alone", async () => {
  await using at = await house({});
  at.state.trusted = true;
  const calls = callsTo("Oslo", "Rome", 1);
  const { asked, questions } = askingAll(at, calls, { reply: "Yes" });
  const tickets = await asked;
  assert.equal(questions.length, 1);
  assert.match(questions[0]?.text ?? "", /these 2 calls[^]*Oslo[^]*Rome/);
  const [oslo, rome] = calls as [Call, Call];
  const ticket = tickets.get(oslo.callId);
  assert.ok(ticket !== undefined);
  assert.equal((await at.callTool({ ...rome, answer: ticket })).kind, "ask");
  assert.equal((await at.callTool({ ...oslo, answer: ticket })).kind, "ask", "used up");
  const other = tickets.get(rome.callId);
  assert.ok(other !== undefined);
  assert.equal((await at.callTool({ ...rome, answer: other })).kind, "result");
});

Deno.test("askForAll() refuses all calls on a no, and approves nothing", async () => {
  await using at = await house({});
  const { asked } = askingAll(at, callsTo("Oslo", "Rome"), { reply: "No" });
  await assert.rejects(asked, { code: "APPROVAL_DECLINED" });
  assert.equal(at.state.accepted, 0);
});

Deno.test("askForAll() asks about an unapproved server with its calls, and approves it once", async () => {
  await using at = await house({ deny: ["weather:yesterday"] });
  const denied = callOf({ id: toolId("weather", "yesterday") });
  const calls = [...callsTo("Oslo", "Rome"), denied];
  const { asked, questions } = askingAll(at, calls, { reply: "Yes" });
  const tickets = await asked;
  assert.equal(questions.length, 1);
  const text = questions[0]?.text ?? "";
  assert.match(text, /the file \/ws\/\.pml\.json[^]*Oslo[^]*in call 1[^]*Rome/);
  assert.equal(questions[0]?.otherwise, "WORKSPACE_UNTRUSTED");
  assert.equal(at.state.accepted, 1);
  // The rules of the file hold now: one of them denies a call that was shown.
  assert.equal(tickets.size, 2);
  for (const call of calls.slice(0, 2)) {
    const answer = tickets.get(call.callId);
    assert.ok(answer !== undefined);
    assert.equal((await at.callTool({ ...call, answer })).kind, "result");
  }
});

Deno.test("askForAll() asks again about calls that were shown for a look only", async () => {
  await using at = await house({ isOnlyForReading: true });
  const { asked, questions } = askingAll(at, callsTo("Oslo"), { reply: "Yes" });
  assert.equal((await asked).size, 1);
  assert.equal(questions.length, 2);
});

for (const [when, count] of [["since the yes", 3], ["while they were shown", 1]] as const) {
  Deno.test(`askForAll() asks again about calls whose files changed ${when}`, async () => {
    await using at = await house({});
    let reads = 0;
    const first = {};
    at.asking.currentConfig = () => reads++ < count ? first : at.state;
    const { asked, questions } = askingAll(at, callsTo("Oslo"), { reply: "Yes" });
    assert.equal((await asked).size, 1);
    assert.equal(questions.length, 2);
  });
}

Deno.test("askForAll() asks again about a call that is another one since the yes", async () => {
  await using at = await house({});
  // Only what "Rome" calls is approved already, and a yes to the other one changes it.
  const known = resolving(serverDouble("weather"), () => NO_RULES);
  const look = (call: Call) =>
    call.arguments.city === "Rome" ? Promise.resolve(known(call)) : admitted(at.resolved)(call);
  at.asking.subjectOf = async (call) => ({
    ...await subjectOf(call),
    rules: `${at.state.trusted}`,
    definition: at.state.trusted && call.arguments.city === "Rome" ? "another" : "d",
  });
  const { asked, questions } = askingAll(at, callsTo("Oslo", "Rome"), { reply: "Yes", look });
  assert.equal((await asked).size, 2);
  assert.deepEqual(questions.map(({ text }) => [text.includes("Oslo"), text.includes("Rome")]), [
    [true, true],
    [false, true],
  ]);
});
