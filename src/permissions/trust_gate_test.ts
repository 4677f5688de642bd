import assert from "node:assert/strict";
import { passCall, serverDouble } from "../core/_server_double_test.ts";
import { type Call, type Outcome, type Question, type Reply, textResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { parsePattern } from "../core/pattern.ts";
import type { PassCall, PassOutcome, Server } from "../core/server.ts";
import { toolId } from "../core/tool_id.ts";
import { Approvals } from "./approvals.ts";
import { askForAll } from "./ask_all.ts";
import { askGate, type GateEvent, judged, refuse } from "./gate.ts";
import { type Judge, makeJudge } from "./rules.ts";
import type { Subject } from "./subject.ts";
import { trustGate } from "./trust_gate.ts";

const WEATHER = toolId("weather", "today");
const DONE: Outcome = { kind: "result", result: textResult("sunny") };

function callOf(change: Partial<Call> = {}): Call {
  return {
    id: WEATHER,
    arguments: { city: "Oslo" },
    via: "test",
    actor: "local",
    signal: new AbortController().signal,
    callId: crypto.randomUUID(),
    ...change,
  };
}

function subjectOf(call: Call): Promise<Subject> {
  const { id: tool, arguments: args, actor } = call;
  const subject = { tool, arguments: args, definition: "d", rules: "r", actor, workspace: "/ws" };
  return Promise.resolve(subject);
}

/** Begins passes like the call path: with the current server and rules. */
function passing(server: Server, judge: () => Judge): (call: Call) => PassCall {
  return (call) => passCall({ ...call, verdict: judged(judge(), call) }, { server });
}

async function house(
  rules: { readonly allow?: string[]; readonly deny?: string[]; readonly isLook?: boolean },
) {
  const home = await Deno.makeTempDir();
  const clock = { now: 1_000_000 };
  const approvals = new Approvals(home, { warn: assert.fail, now: () => clock.now, ttl: 600_000 });
  const events: GateEvent["event"][] = [];
  const ran: Call[] = [];
  const state = { trusted: false, accepted: 0, passed: 0 };
  const list = (texts: readonly string[] = []) =>
    texts.map((text) => ({ pattern: parsePattern(text), source: "x" }));
  const trusted = makeJudge({ deny: list(rules.deny), ask: [], allow: list(rules.allow) });
  const untrusted = makeJudge({ deny: [], ask: [], allow: [] });
  const judge = () => state.trusted ? trusted : untrusted;
  const asking = {
    approvals,
    subjectOf,
    alwaysOffered: () => undefined,
    always: () => Promise.resolve(),
    record: ({ event }: GateEvent) => Promise.resolve(void events.push(event)),
    read: (): object => state,
  };
  const unapproved = () =>
    Promise.resolve(
      state.trusted ? undefined : {
        code: "WORKSPACE_UNTRUSTED" as const,
        facts: ["the file /ws/.pml.json"],
        ...(rules.isLook && { isLook: true }),
        accept: () => {
          state.accepted++;
          state.trusted = true;
          return Promise.resolve();
        },
      },
    );
  const asked = askGate(asking)((call) => {
    ran.push(call);
    return Promise.resolve(DONE);
  });
  const again = passing(serverDouble("weather", { unapproved }), judge);
  const gated = trustGate({
    ...asking,
    again: admitted(again),
    isCurrent: () => true,
    workspace: () => "/ws",
  })(async (call) => {
    state.passed++;
    return await asked(call);
  });
  const callTool = (call: Call) => gated(again(call));
  const close = () => Deno.remove(home, { recursive: true });
  return { callTool, again, clock, events, ran, state, asking, [Symbol.asyncDispose]: close };
}

/** Begins passes like the call path: a call that a deny rule matches stops here. */
function admitted(again: (call: Call) => PassCall): (call: Call) => Promise<PassCall> {
  return async (call) => {
    const next = await Promise.resolve(again(call));
    refuse(next);
    return next;
  };
}

async function questionOf(outcome: Promise<PassOutcome>) {
  const came = await outcome;
  assert.ok(came.kind === "ask");
  return came.question;
}

Deno.test("trustGate() asks before anything of the server runs, and a yes covers the call too", async () => {
  await using at = await house({});
  const question = await questionOf(at.callTool(callOf()));
  assert.equal(question.otherwise, "WORKSPACE_UNTRUSTED");
  assert.ok(question.text.includes("/ws/.pml.json") && question.text.includes("Oslo"));
  assert.ok(!question.always);
  const answer = { handle: question.handle, reply: "Yes" as const };
  assert.equal((await at.callTool(callOf({ answer }))).kind, "result");
  assert.deepEqual([at.state.accepted, at.ran.length], [1, 1]);
  assert.deepEqual(at.events, ["asked", "approved", "approved"]);
});

Deno.test("trustGate() takes a yes to a look for no yes to the call", async () => {
  await using at = await house({ isLook: true });
  const { handle } = await questionOf(at.callTool(callOf()));
  const outcome = await at.callTool(callOf({ answer: { handle, reply: "Yes" } }));
  assert.equal(outcome.kind, "ask", "the call itself");
  assert.deepEqual([at.state.accepted, at.ran.length], [1, 0]);
});

Deno.test("trustGate() judges again by the rules that the trusted file brings", async () => {
  await using at = await house({ deny: ["weather:*"] });
  const { handle } = await questionOf(at.callTool(callOf()));
  await assert.rejects(
    at.callTool(callOf({ answer: { handle, reply: "Yes" } })),
    (error) => error instanceof PmlError && error.code === "PERMISSION_DENIED",
  );
  assert.deepEqual([at.ran.length, at.state.passed], [0, 0]);
});

Deno.test("trustGate() asks until nothing is left to ask about, and of the call itself once", async () => {
  await using at = await house({});
  const left = ["the file", "the tool"];
  const unapproved = () =>
    Promise.resolve(
      left.length === 0 ? undefined : {
        code: "APPROVAL_STALE" as const,
        facts: left.slice(0, 1),
        accept: () => Promise.resolve(void left.shift()),
      },
    );
  const judge = () => makeJudge({ deny: [], ask: [], allow: [] });
  const again = passing(serverDouble("weather", { unapproved }), judge);
  const options = {
    ...at.asking,
    again: admitted(again),
    isCurrent: () => true,
    workspace: () => "/ws",
  };
  const asked = askGate(at.asking)(() => Promise.resolve(DONE));
  const callTool = (call: Call) => trustGate(options)(asked)(again(call));
  const first = await questionOf(callTool(callOf()));
  const second = await questionOf(
    callTool(callOf({ answer: { handle: first.handle, reply: "Yes" } })),
  );
  assert.deepEqual(
    [first, second].map(({ text }) => /the (?:file|tool)/.exec(text)?.[0]),
    ["the file", "the tool"],
  );
  const { kind } = await callTool(callOf({ answer: { handle: second.handle, reply: "Yes" } }));
  assert.equal(kind, "result");
});

Deno.test("trustGate() judges again with the arguments of the call", async () => {
  await using at = await house({ deny: ["weather:today(city=O*)"], allow: ["weather:*"] });
  const answered = async (city: string) => {
    at.state.trusted = false;
    const call = callOf({ arguments: { city } });
    const { handle } = await questionOf(at.callTool(call));
    return await at.callTool({ ...call, answer: { handle, reply: "Yes" } });
  };
  await assert.rejects(answered("Oslo"), { code: "PERMISSION_DENIED" });
  assert.equal((await answered("Rome")).kind, "result");
});

Deno.test("trustGate() runs nothing on a no, a forged handle or other arguments", async () => {
  await using at = await house({});
  const { handle } = await questionOf(at.callTool(callOf()));
  const forged = { handle: `${handle}x`, reply: "Yes" as const };
  assert.equal((await at.callTool(callOf({ answer: forged }))).kind, "ask");
  const moved = callOf({ arguments: { city: "Rome" }, answer: { handle, reply: "Yes" } });
  assert.equal((await at.callTool(moved)).kind, "ask");
  const again = callOf({ answer: { handle, reply: "Yes" } });
  assert.equal((await at.callTool(again)).kind, "ask", "the handle was used up");
  const last = await questionOf(at.callTool(callOf()));
  at.clock.now += 1_000;
  await assert.rejects(
    at.callTool(callOf({ answer: { handle: last.handle, reply: "No" } })),
    (error) => error instanceof PmlError && error.code === "APPROVAL_DECLINED",
  );
  assert.deepEqual([at.state.accepted, at.ran.length], [0, 0]);
});

Deno.test("trustGate() looks a server up again after each yes, and asks about the one that came", async () => {
  await using at = await house({});
  const judge = () => makeJudge({ deny: [], ask: [], allow: [] });
  const said: string[] = [];
  const server = (name: string, then: Server): Server =>
    serverDouble(name, {
      unapproved: () =>
        Promise.resolve({
          code: "APPROVAL_REQUIRED",
          facts: [`it is the ${name}`],
          accept: () => {
            said.push(name);
            now = then;
            return Promise.resolve();
          },
        }),
    });
  let now = server("first", server("second", serverDouble("weather")));
  const ran: string[] = [];
  const again = (call: Call) => passing(now, judge)(call);
  const gated = trustGate({
    ...{ ...at.asking, again: admitted(again) },
    isCurrent: ({ pass }) => pass.server === now,
    workspace: () => "/ws",
  })(
    askGate(at.asking)(({ pass }) => {
      ran.push(pass.server.name);
      return Promise.resolve(DONE);
    }),
  );
  let answer: Call["answer"];
  for (const name of ["first", "second"]) {
    const question = await questionOf(gated(again(callOf(answer && { answer }))));
    assert.match(question.text, new RegExp(`it is the ${name}`));
    assert.deepEqual(ran, []);
    answer = { handle: question.handle, reply: "Yes" };
  }
  assert.equal((await gated(again(callOf(answer && { answer })))).kind, "result");
  assert.deepEqual([said, ran], [["first", "second"], ["weather"]]);
});

Deno.test("trustGate() lets nothing pass that changed while it was looked at, and gives up in the end", async () => {
  await using at = await house({ deny: ["weather:*"] });
  let passes = 0;
  const again = (call: Call) => {
    passes++;
    return at.again(call);
  };
  const gate = (isCurrent: () => boolean) =>
    trustGate({ ...at.asking, again: admitted(again), isCurrent, workspace: () => "/ws" })(() =>
      assert.fail()
    );
  const trusted = gate(() => {
    at.state.trusted = true;
    return false;
  });
  at.state.trusted = true;
  const first = passing(serverDouble("weather"), () => makeJudge({ deny: [], ask: [], allow: [] }));
  // The deny rule came after the first judgement. It is seen before anybody is asked.
  await assert.rejects(trusted(first(callOf())), { code: "PERMISSION_DENIED" });
  assert.equal(passes, 1);
  await using restless = await house({});
  restless.state.trusted = true;
  const forever = trustGate({
    ...{ ...restless.asking, again: admitted(restless.again) },
    isCurrent: () => false,
    workspace: () => "/ws",
  })(() => assert.fail());
  await assert.rejects(forever(restless.again(callOf())), { code: "OVERLOADED" });
});

type House = Awaited<ReturnType<typeof house>>;

/** Asks for calls of a house; `reply` answers each question. */
function askingAll(
  at: House,
  calls: readonly Call[],
  { reply, look = admitted(at.again) }: {
    readonly reply: Reply;
    readonly look?: (call: Call) => Promise<PassCall>;
  },
) {
  const questions: Question[] = [];
  const asked = askForAll(calls, {
    ...at.asking,
    look,
    isCurrent: () => true,
    workspace: () => "/ws",
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

Deno.test("askForAll() asks once for several calls and gives each a ticket for itself alone", async () => {
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

Deno.test("askForAll() asks about a server that nobody approved with its calls, and approves it once", async () => {
  await using at = await house({ deny: ["weather:yesterday"] });
  const denied = callOf({ id: toolId("weather", "yesterday") });
  const calls = [...callsTo("Oslo", "Rome"), denied];
  const { asked, questions } = askingAll(at, calls, { reply: "Yes" });
  const tickets = await asked;
  assert.equal(questions.length, 1);
  const text = questions[0]?.text ?? "";
  assert.match(text, /the file \/ws\/\.pml\.json[^]*Oslo[^]*What call 1 says[^]*Rome/);
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
  await using at = await house({ isLook: true });
  const { asked, questions } = askingAll(at, callsTo("Oslo"), { reply: "Yes" });
  assert.equal((await asked).size, 1);
  assert.equal(questions.length, 2);
});

Deno.test("askForAll() asks again about calls whose files changed since the yes", async () => {
  await using at = await house({});
  let reads = 0;
  at.asking.read = () => reads++ === 0 ? {} : at.state;
  const { asked, questions } = askingAll(at, callsTo("Oslo"), { reply: "Yes" });
  assert.equal((await asked).size, 1);
  assert.equal(questions.length, 2);
});

Deno.test("askForAll() asks again about a call that is another one since the yes", async () => {
  await using at = await house({});
  // Only what "Rome" calls is approved already, and a yes to the other one changes it.
  const known = passing(serverDouble("weather"), () => makeJudge({ deny: [], ask: [], allow: [] }));
  const look = (call: Call) =>
    call.arguments.city === "Rome" ? Promise.resolve(known(call)) : admitted(at.again)(call);
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
