import assert from "node:assert/strict";
import { serverDouble } from "../../servers/_server_double_test.ts";
import { YES_OR_NO } from "../../protocol/answers.ts";
import type { Call, Outcome } from "../../protocol/call.ts";
import { PmlError } from "../../core/errors.ts";
import type { Server } from "../../servers/server.ts";
import { callOf, house, NO_RULES, trusting } from "../_trust_house_test.ts";

async function questionOf(outcome: Promise<Outcome>) {
  const came = await outcome;
  assert.ok(came.kind === "ask");
  return came.question;
}

Deno.test("serverIsTrusted() asks before anything of the server runs, and a yes covers the call too", async () => {
  await using at = await house({});
  const question = await questionOf(at.callTool(callOf()));
  assert.equal(question.otherwise, "WORKSPACE_UNTRUSTED");
  assert.ok(question.text.includes("/ws/.pml.json") && question.text.includes("Oslo"));
  assert.deepEqual(question.answers, YES_OR_NO);
  assert.equal(question.suggested, "No");
  const answer = { handle: question.handle, reply: "Yes" as const };
  assert.equal((await at.callTool(callOf({ answer }))).kind, "result");
  assert.deepEqual([at.state.accepted, at.ran.length], [1, 1]);
  assert.deepEqual(at.events, ["asked", "approved", "approved"]);
});

Deno.test("serverIsTrusted() takes a yes to a look for no yes to the call", async () => {
  await using at = await house({ isOnlyForReading: true });
  const { handle } = await questionOf(at.callTool(callOf()));
  const outcome = await at.callTool(callOf({ answer: { handle, reply: "Yes" } }));
  assert.equal(outcome.kind, "ask", "the call itself");
  assert.deepEqual([at.state.accepted, at.ran.length], [1, 0]);
});

Deno.test("serverIsTrusted() judges again by the rules that the trusted file brings", async () => {
  await using at = await house({ deny: ["weather:*"] });
  const { handle } = await questionOf(at.callTool(callOf()));
  await assert.rejects(
    at.callTool(callOf({ answer: { handle, reply: "Yes" } })),
    (error) => error instanceof PmlError && error.code === "PERMISSION_DENIED",
  );
  assert.deepEqual([at.ran.length, at.state.passed], [0, 0]);
});

Deno.test("serverIsTrusted() asks until nothing is left to ask about, and of the call itself once", async () => {
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
  const server = serverDouble("weather", { findUnapproved: unapproved });
  const callTool = trusting(at.asking, {
    resolve: () => ({ server, judge: NO_RULES }),
    run: () => {},
  });
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

Deno.test("serverIsTrusted() judges again with the arguments of the call", async () => {
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

Deno.test("serverIsTrusted() runs nothing on a no, a forged handle or other arguments", async () => {
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

Deno.test("serverIsTrusted() looks a server up again after each yes, and asks about the new server", async () => {
  await using at = await house({});
  const said: string[] = [];
  const server = (name: string, then: Server): Server =>
    serverDouble(name, {
      findUnapproved: () =>
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
  let resolved: Server | undefined;
  const callTool = trusting(at.asking, {
    resolve: () => ({ server: resolved = now, judge: NO_RULES }),
    isCurrent: () => resolved === now,
    run: ({ server }) => void ran.push(server.name),
  });
  let answer: Call["answer"];
  for (const name of ["first", "second"]) {
    const question = await questionOf(callTool(callOf(answer && { answer })));
    assert.match(question.text, new RegExp(`it is the ${name}`));
    assert.deepEqual(ran, []);
    answer = { handle: question.handle, reply: "Yes" };
  }
  assert.equal((await callTool(callOf(answer && { answer }))).kind, "result");
  assert.deepEqual([said, ran], [["first", "second"], ["weather"]]);
});

Deno.test("serverIsTrusted() passes no server that changed meanwhile, and fails after too many changes", async () => {
  await using at = await house({ deny: ["weather:*"] });
  let passes = 0;
  const { server, judge } = at;
  const changing = trusting(at.asking, {
    // The deny rule comes after the first decision. It is seen before anybody is asked.
    resolve: () => ({ server, judge: passes++ === 0 ? NO_RULES : judge() }),
    isCurrent: () => false,
    passed: assert.fail,
    run: () => assert.fail(),
  });
  at.state.trusted = true;
  await assert.rejects(changing(callOf()), { code: "PERMISSION_DENIED" });
  assert.equal(passes, 2);
  await using restless = await house({});
  restless.state.trusted = true;
  const forever = trusting(restless.asking, {
    resolve: () => ({ server: restless.server, judge: restless.judge() }),
    isCurrent: () => false,
    passed: assert.fail,
    run: () => assert.fail(),
  });
  await assert.rejects(forever(callOf()), { code: "OVERLOADED" });
  assert.deepEqual([at.events, restless.events], [[], []]);
});
