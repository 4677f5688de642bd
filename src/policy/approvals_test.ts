import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { callOf } from "../calls/_trust_house_test.ts";
import { toolId } from "../core/tool_id.ts";
import { type ApprovalEvent, askUser } from "../calls/decisions.ts";
import { YES_OR_NO } from "../protocol/answers.ts";
import { digestOf } from "./subject.ts";
import type { Json } from "../core/json.ts";
import type { ApprovalReply } from "../protocol/answers.ts";
import type { Subject } from "./subject.ts";
import type { ToolSet } from "./tool_set.ts";
import { fixture, MINUTE, subject } from "./_approvals_fixture_test.ts";

const ALWAYS = { always: "fs:write" };

Deno.test("settle() returns the meaning of each of the four answers", async () => {
  await using at = await fixture();
  for (const reply of ["Yes", "Always", "No", "cancelled"]) {
    assert.equal(at.answered(subject(), reply), reply);
  }
  for (const other of ["yes", "", "accept", "toString"]) {
    assert.equal(at.answered(subject({ other }), other), undefined);
  }
});

Deno.test("open() adds a remark to the next question only", async () => {
  await using at = await fixture();
  const texts = [1, 2, 3].map((count) => {
    if (count === 2) at.approvals.addRemark("Deno alone confines modules");
    return at.approvals.open([subject()]).text;
  });
  assert.deepEqual(texts.map((text) => text.includes("Deno alone")), [false, true, false]);
});

Deno.test("settle() accepts a handle once, and rejects unknown handles", async () => {
  await using at = await fixture();
  const digest = digestOf([subject()]);
  const { handle } = at.approvals.open([subject()]);
  assert.equal(handle.length, 43);
  for (const other of ["", handle.slice(1), `${handle}A`, handle.toUpperCase(), "__proto__"]) {
    assert.equal(at.approvals.settle({ handle: other, reply: "Yes" }, digest), undefined);
  }
  assert.equal(at.approvals.settle({ handle, reply: "Yes" }, digest), "Yes");
  assert.equal(at.approvals.settle({ handle, reply: "Yes" }, digest), undefined);
});

Deno.test("settle() rejects an answer to a question of another process", async () => {
  await using one = await fixture();
  await using other = await fixture();
  const { handle } = one.approvals.open([subject()]);
  const settled = other.approvals.settle({ handle, reply: "Yes" }, digestOf([subject()]));
  assert.equal(settled, undefined);
});

Deno.test("settle() rejects an answer for other subjects and uses up its handle", async () => {
  await using at = await fixture();
  const changes: Partial<Subject>[] = [
    { tool: toolId("filesystem", "edit_file") },
    { tool: toolId("filesystem-evil", "write_file") },
    { arguments: { path: "b.txt" } },
    { arguments: {} },
    { definition: "d2" },
    { rules: "r2" },
    { actor: "other" },
    { workspace: "/x" },
    { facts: ["Kind: stdio"] },
  ];
  for (const change of changes) {
    const { handle } = at.approvals.open([subject()]);
    const about = digestOf([{ ...subject(), ...change }]);
    assert.equal(at.approvals.settle({ handle, reply: "Yes" }, about), undefined);
    const then = at.approvals.settle({ handle, reply: "Yes" }, digestOf([subject()]));
    assert.equal(then, undefined, JSON.stringify(change));
  }
});

Deno.test("digestOf() depends on the arguments but not on the order of keys", () => {
  const value = fc.jsonValue({ maxDepth: 2 })
    .map((json) => JSON.parse(JSON.stringify(json)) as Json);
  fc.assert(fc.property(value, fc.oneof(value, fc.constant(undefined)), (one, drawn) => {
    const other = drawn === undefined ? one : drawn;
    const digests = [{ x: one, y: 1 }, { y: 1, x: other }].map((given) =>
      digestOf([subject(given)])
    );
    assert.equal(digests[0] === digests[1], isDeepStrictEqual(one, other));
  }));
});

Deno.test("digestOf() throws for arguments that are not valid JSON", () => {
  const deep = JSON.parse("[".repeat(100_000) + "]".repeat(100_000));
  for (const given of [{ x: Infinity }, { x: "\ud800" }, { x: deep }]) {
    assert.throws(() => digestOf([subject(given)]), { code: "BAD_ARGUMENTS" });
  }
});

Deno.test("settle() rejects answers after ten minutes, and after the clock was set back", async () => {
  await using at = await fixture();
  const digest = digestOf([subject()]);
  for (
    const [passed, settled] of [[10 * MINUTE - 1, "Yes"], [10 * MINUTE, undefined], [-1, undefined]]
  ) {
    const { handle } = at.approvals.open([subject()]);
    at.clock.now += Number(passed);
    assert.equal(at.approvals.settle({ handle, reply: "Yes" }, digest), settled);
  }
});

Deno.test("a refusal within 300 ms counts as a missing channel", async () => {
  await using at = await fixture();
  const digest = digestOf([subject()]);
  for (const reply of ["No", "cancelled"] as const) {
    for (const [passed, settled] of [[0, "no-channel"], [299, "no-channel"], [300, reply]]) {
      const { handle } = at.approvals.open([subject()]);
      at.clock.now += Number(passed);
      assert.equal(at.approvals.settle({ handle, reply }, digest), settled);
    }
  }
});

Deno.test("an Always within 300 ms counts as a single Yes (GX13)", async () => {
  await using at = await fixture();
  const digest = digestOf([subject()]);
  for (const [passed, settled] of [[0, "Yes"], [299, "Yes"], [300, "Always"]] as const) {
    const { handle } = at.approvals.open([subject()], ALWAYS);
    at.clock.now += passed;
    assert.equal(at.approvals.settle({ handle, reply: "Always" }, digest, ALWAYS), settled);
  }
});

Deno.test("an Always within 300 ms counts as a single Yes if the client stored the question (GX13)", async () => {
  await using at = await fixture();
  const digest = digestOf([subject()]);
  // In the last case, the clock of the asking process is ahead.
  const cases = [[0, 0, "Yes"], [299, 0, "Yes"], [300, 0, "Always"], [299, 5_000, "Yes"]] as const;
  for (const [passed, ahead, settled] of cases) {
    const { handle: asked } = at.approvals.open([subject()], ALWAYS);
    const sent = at.approvals.send(asked);
    assert.ok(sent);
    at.clock.now += passed;
    const question = { ...sent, at: sent.at + ahead };
    const handle = at.approvals.restore(question, () => Promise.resolve());
    assert.equal(at.approvals.settle({ handle, reply: "Always" }, digest, ALWAYS), settled);
  }
});

Deno.test("an Always counts as a single Yes if it would write another rule, file or nothing now", async () => {
  await using at = await fixture();
  const digest = digestOf([subject()]);
  const offers = [ALWAYS, {}, { always: "fs:read" }, { ...ALWAYS, reach: "to another file" }];
  const replies = offers.map((offer) => {
    const { handle } = at.approvals.open([subject()], ALWAYS);
    at.clock.now += 1_000;
    return at.approvals.settle({ handle, reply: "Always" }, digest, offer);
  });
  assert.deepEqual(replies, ["Always", "Yes", "Yes", "Yes"]);
});

Deno.test("the journal records why an Always within 300 ms was not saved (GX13)", async () => {
  await using at = await fixture();
  const { handle } = at.approvals.open([subject()], { always: "fs:write" });
  const call = { ...callOf({ answer: { handle, reply: "Always" } }), id: subject().tool };
  const events: string[] = [];
  const host = {
    approvals: at.approvals,
    record: ({ event, detail }: ApprovalEvent) =>
      Promise.resolve(void events.push(`${event}: ${detail?.why}`)),
  };
  const { kind } = await askUser([call], host, { subjects: [subject()], answer: call.answer });
  assert.equal(kind, "Yes");
  assert.equal(events.length, 1);
  assert.match(events[0] ?? "", /^always_not_kept: .*300 ms/);
});

/** Returns a set of tools whose texts have this length in all. */
function setOf(reply: ToolSet["reply"], length: number): ToolSet {
  const lines = [`| ${"x".repeat(length)}`];
  const tools = ["write_file", "other"].map((tool) => ({
    id: toolId("filesystem", tool),
    definition: tool,
    effect: { reads: true, destroys: false },
    lines,
  }));
  return { reply, tools };
}

Deno.test("a question offers several tools only if all of their texts fit into it", async () => {
  await using at = await fixture();
  const opened = (...sets: ToolSet[]) => at.approvals.open([subject()], { sets, never: "fs:w" });
  const { answers, text, terminalOnly } = opened(setOf("Reads", 1_000), setOf("All", 1_000));
  assert.deepEqual(answers, [
    { reply: "Yes" },
    { reply: "Reads", tools: 2 },
    { reply: "No" },
    { reply: "Never" },
  ]);
  assert.ok(!terminalOnly && text.length < 4_000 && text.includes("x".repeat(1_000)));
  assert.match(text, /"Always for these 2 tools that read"[^"]*\n\n {4}"write_file"\n {6}\| x/);
  const long = opened(setOf("Reads", 3_000));
  assert.deepEqual(long.answers.map(({ reply }) => reply), ["Yes", "No", "Never"]);
  assert.equal(long.terminalOnly, false, "the call itself fits");
  const pending = await at.approvals.saveForTerminal(long.handle);
  assert.equal(pending?.sets?.[0]?.tools.length, 2, "a terminal has space for them");
  assert.deepEqual([pending?.always, pending?.never], [false, true]);
});

Deno.test("an answer for several tools needs the same tools, and 300 ms", async () => {
  await using at = await fixture();
  const set = setOf("Reads", 10);
  const settled = (now: readonly ToolSet[], ms: number, reply: ApprovalReply = "Reads") => {
    const { handle } = at.approvals.open([subject()], { sets: [set] });
    at.clock.now += ms;
    return at.approvals.settle({ handle, reply }, digestOf([subject()]), { sets: now });
  };
  const [first, second] = set.tools;
  assert.ok(first !== undefined && second !== undefined);
  assert.equal(settled([set], 1_000), "Reads");
  assert.equal(settled([set], 299), "Yes");
  for (const tools of [[first], [first, { ...second, definition: "new" }], [second, first]]) {
    assert.equal(settled([{ ...set, tools }], 1_000), "Yes");
  }
  assert.equal(settled([], 1_000), "Yes");
  assert.equal(settled([{ ...set, reply: "All" }], 1_000, "All"), undefined, "it was not offered");
});

Deno.test("a question suggests no if a quick yes could do harm", async () => {
  await using at = await fixture();
  const suggested = (...subjects: readonly Subject[]) => at.approvals.open(subjects).suggested;
  const key = `ghp_${"a1B2c3D4".repeat(4)}`;
  assert.equal(suggested(subject()), "Yes");
  assert.equal(suggested(subject({}, { isRisky: true })), "No");
  assert.equal(suggested(subject({ deep: [{ token: key }] })), "No");
  assert.equal(suggested(subject({}, { members: { params: { more: key } } })), "No");
  assert.equal(suggested(subject(), subject({}, { isRisky: true })), "No");
});

Deno.test("an Always that was not offered is rejected", async () => {
  await using at = await fixture();
  const question = at.approvals.open([subject()]);
  assert.deepEqual(question.answers, YES_OR_NO);
  const answer = { handle: question.handle, reply: "Always" } as const;
  assert.equal(at.approvals.settle(answer, digestOf([subject()])), undefined);
  const both = [subject(), subject({ path: "b" })];
  const asked = at.approvals.open(both, { always: "fs:write" });
  assert.deepEqual(asked.answers, YES_OR_NO);
  assert.doesNotMatch(asked.text, /Always/);
});

Deno.test("a second answer that was not offered counts as no channel, for this call alone", async () => {
  await using at = await fixture();
  const answered = (path: string) => at.answered(subject({ path }), "Session");
  assert.deepEqual(["a", "b", "a", "a"].map(answered), [
    undefined,
    undefined,
    "no-channel",
    "no-channel",
  ]);
  assert.equal(at.answered(subject({ path: "a" }), "Yes"), "Yes");
  at.clock.now += 10 * MINUTE;
  assert.equal(answered("a"), undefined);
});

Deno.test("a question describes the effect of Always if it offers it", async () => {
  await using at = await fixture();
  const { tool } = subject();
  const said = (always?: string) => at.approvals.open([subject()], { always }).text;
  assert.match(said(tool), /\n\n"Always" .* any arguments\n$/);
  assert.match(said(`${tool}({"path":"a"})`), /\n\n"Always" allows exactly these arguments\n$/);
  assert.doesNotMatch(said(), /Always/);
});

Deno.test("the oldest question is removed if there are too many", async () => {
  await using at = await fixture();
  const handles = Array.from({ length: 1_001 }, () => at.approvals.open([subject()]).handle);
  const settled = handles.map((handle) =>
    at.approvals.settle({ handle, reply: "Yes" }, digestOf([subject()]))
  );
  assert.deepEqual([settled[0], settled[1], settled[1_000]], [undefined, "Yes", "Yes"]);
});

Deno.test("open questions have a limited number of characters together", async () => {
  await using at = await fixture();
  const large = subject({ content: "x".repeat(8_000_000) });
  const first = at.approvals.open([large]);
  for (let count = 0; count < 8; count++) at.approvals.open([large]);
  assert.equal(await at.approvals.saveForTerminal(first.handle), undefined);
});

Deno.test("a question too long for a client can only be answered at a terminal", async () => {
  await using at = await fixture();
  const long = subject({ content: "x".repeat(4_000) });
  const question = at.approvals.open([long], { always: "fs:write" });
  assert.equal(question.terminalOnly, true);
  assert.ok(question.text.length < 4_000);
  assert.match(question.text, /Server: "filesystem"/);
  at.clock.now += 1_000;
  const answer = { handle: question.handle, reply: "Yes" } as const;
  assert.equal(at.approvals.settle(answer, digestOf([long])), undefined);
  const again = at.approvals.open([long]);
  const left = await at.approvals.saveForTerminal(again.handle);
  assert.ok(left?.text.includes("x".repeat(4_000)));
});

Deno.test("a question with more than ten calls can only be answered at a terminal", async () => {
  await using at = await fixture();
  const calls = Array.from({ length: 10 }, (_, index) => subject({ path: `${index}` }));
  const question = at.approvals.open(calls);
  for (const index of calls.keys()) assert.match(question.text, new RegExp(`"path": "${index}"`));
  at.clock.now += 1_000;
  const answer = { handle: question.handle, reply: "Yes" } as const;
  assert.equal(at.approvals.settle(answer, digestOf(calls)), "Yes");
  const more = [...calls, subject({ path: "last" })];
  const long = at.approvals.open(more);
  assert.ok(long.terminalOnly);
  assert.match(long.text, /1 more calls[^]*`pml approve`/);
  at.clock.now += 1_000;
  const yes = { handle: long.handle, reply: "Yes" } as const;
  assert.equal(at.approvals.settle(yes, digestOf(more)), undefined);
  const left = await at.approvals.saveForTerminal(at.approvals.open(more).handle);
  assert.match(left?.text ?? "", /"path": "last"/);
  const most = Array.from({ length: 1_001 }, () => subject());
  assert.throws(() => at.approvals.open(most), { code: "BAD_ARGUMENTS" });
});

Deno.test("answerYes() returns an answer for one call of an approved batch that works once", async () => {
  await using at = await fixture();
  const ticket = at.approvals.answerYes(subject());
  const other = at.approvals.answerYes(subject());
  assert.equal(at.approvals.settle(other, digestOf([subject({ path: "b" })])), undefined);
  assert.equal(at.approvals.settle(ticket, digestOf([subject()])), "Yes");
  assert.equal(at.approvals.settle(ticket, digestOf([subject()])), undefined);
});
