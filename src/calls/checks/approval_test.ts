import assert from "node:assert/strict";
import { join } from "node:path";
import type { ApprovalReply } from "../../protocol/answers.ts";
import type { ApprovalAnswer, Call, Question } from "../../protocol/call.ts";
import type { Verdict } from "../../protocol/verdict.ts";
import { toolId } from "../../core/tool_id.ts";
import { Approvals, type LastingAnswers } from "../../policy/approvals.ts";
import { type ApprovalEvent, type ApprovalHost, decisionOf } from "../decisions.ts";
import { digestOf, type Subject } from "../../policy/subject.ts";
import type { ToolSet } from "../../policy/tool_set.ts";
import {
  ALLOW,
  ASK,
  DENY,
  DONE,
  newCall,
  newPipeline,
  NO_OFFERS,
  NO_SESSIONS,
  resolvedContext,
} from "../_context_test.ts";
import { approved } from "./approval.ts";

function subject(call: Pick<Call, "id" | "arguments" | "actor">): Subject {
  const { id: tool, arguments: given, actor } = call;
  return { tool, arguments: given, actor, definition: "d", rules: "r", workspace: "/w" };
}

function subjectOf(call: Parameters<typeof subject>[0]): Promise<Subject> {
  return Promise.resolve(subject(call));
}

function offers({ answers }: Pick<Question, "answers">, reply: ApprovalReply): boolean {
  return answers.some((offered) => offered.reply === reply);
}

/** The workspace, and the present configuration. */
const HERE = { workspace: "/w", currentConfig: () => ({}) };

interface FixtureOptions {
  readonly verdict?: Verdict;
  readonly offered?: boolean;
  readonly lasting?: LastingAnswers;
}

/** Returns the members of the host that save lasting answers, and note that they did. */
function lastingOf(
  { lasting, offered }: FixtureOptions,
  order: string[],
  failing: { readonly always: boolean },
) {
  const offers: ApprovalHost["offers"] = {
    findAnswers: ({ id }) => Promise.resolve({ never: id, ...lasting }),
  };
  const rules: ApprovalHost["rules"] = {
    offeredRule: ({ id }) => offered === false ? undefined : id,
    reachOf: () => "",
    add: async () => {
      await Promise.resolve();
      if (failing.always) throw new Error("disk full");
      order.push("kept");
    },
    addTools: (tools) => Promise.resolve(void order.push(`kept ${tools.length}`)),
    deny: ({ id }) => Promise.resolve(void order.push(`denied ${id}`)),
  };
  return { offers, rules, sessions: NO_SESSIONS };
}

function approvalsOf(home: string, clock: { readonly now: number }): Approvals {
  const lifetime = { ttl: 600_000, clock: { now: () => clock.now } };
  return new Approvals(home, { warn: assert.fail }, lifetime);
}

async function fixture(options: FixtureOptions = {}) {
  const home = await Deno.makeTempDir();
  const clock = { now: 1_000_000 };
  const approvals = approvalsOf(home, clock);
  const [order, events]: [string[], ApprovalEvent[]] = [[], []];
  const failing = { always: false, record: false };
  const check = approved({
    approvals,
    subjectOf,
    ...HERE,
    ...lastingOf(options, order, failing),
    record: async (event) => {
      await Promise.resolve();
      if (failing.record) throw new Error("journal full");
      order.push(event.event);
      events.push(event);
    },
  });
  const seen: Pick<Call, "answer" | "verdict">[] = [];
  const pipeline = newPipeline({
    verdict: decisionOf(() => options.verdict ?? ASK, newCall(), undefined),
    checks: [check],
    run: ({ answer, verdict }) => {
      seen.push({ ...answer && { answer }, ...verdict && { verdict } });
      order.push("ran");
      return Promise.resolve(DONE);
    },
  });
  const { callTool } = pipeline;
  /** Asks about a call, and returns the answer that a user gives a second later. */
  const answerTo = async (reply: ApprovalReply, call = newCall()): Promise<ApprovalAnswer> => {
    const outcome = await callTool(call);
    assert.ok(outcome.kind === "ask");
    clock.now += 1_000;
    order.length = 0;
    return { handle: outcome.question.handle, reply };
  };

  return {
    home,
    clock,
    approvals,
    order,
    events,
    failing,
    seen,
    callTool,
    answerTo,
    [Symbol.asyncDispose]: () => {
      pipeline[Symbol.dispose]();
      return Deno.remove(home, { recursive: true });
    },
  };
}

Deno.test("an allowed call passes unasked", async () => {
  await using at = await fixture({ verdict: ALLOW });
  assert.deepEqual(await at.callTool(newCall()), DONE);
  assert.deepEqual(at.order, ["ran"]);
  assert.deepEqual(at.seen[0]?.verdict, ALLOW);
});

Deno.test("a denied call never reaches the tool, with any members", async () => {
  await using at = await fixture({ verdict: DENY });
  const ticket = at.approvals.answerYes(subject(newCall()));
  for (const call of [newCall(), newCall({ verdict: ALLOW }), newCall({ answer: ticket })]) {
    await assert.rejects(at.callTool(call), {
      code: "PERMISSION_DENIED",
      message: 'Cannot run "fs:write": a deny rule matches',
      hint: /"fs:\*" in "\/w\/\.pml\.json"/,
    });
  }
  assert.deepEqual(at.order, []);
});

Deno.test("approved() refuses a denied call, also as the only check", async () => {
  await using at = await fixture();
  const never = () => assert.fail();
  const check = approved({
    approvals: at.approvals,
    subjectOf,
    ...HERE,
    offers: { findAnswers: never },
    sessions: NO_SESSIONS,
    rules: NO_OFFERS,
    record: never,
  });
  const call = resolvedContext(newCall(), { verdict: DENY });
  assert.throws(() => check(call), { code: "PERMISSION_DENIED" });
});

Deno.test("a call without a decision is asked about", async () => {
  await using at = await fixture();
  const check = approved({
    approvals: at.approvals,
    subjectOf,
    ...HERE,
    offers: NO_OFFERS,
    sessions: NO_SESSIONS,
    rules: NO_OFFERS,
    record: () => Promise.resolve(),
  });
  const result = await check(resolvedContext(newCall()));
  assert.ok(typeof result === "object" && result.kind === "ask");
});

Deno.test("a call without a rule becomes a question, and nothing runs", async () => {
  await using at = await fixture();
  const outcome = await at.callTool(newCall());
  assert.ok(outcome.kind === "ask");
  assert.deepEqual(outcome.question.answers.map(({ reply }) => reply), [
    "Yes",
    "Always",
    "No",
    "Never",
  ]);
  assert.equal(outcome.question.terminalOnly, false);
  assert.match(outcome.question.text, /Tool: "write"/);
  assert.deepEqual(at.order, ["asked"]);
});

Deno.test("Yes lets the call pass once, after it was recorded", async () => {
  await using at = await fixture();
  const answer = await at.answerTo("Yes");
  assert.deepEqual(await at.callTool(newCall({ answer })), DONE);
  assert.deepEqual(at.order, ["approved", "ran"]);
  assert.equal(at.seen[0]?.answer, undefined);
  assert.equal((await at.callTool(newCall({ answer }))).kind, "ask");
  assert.equal(at.seen.length, 1);
});

Deno.test("nothing runs where the approval cannot be recorded", async () => {
  await using at = await fixture();
  const answer = await at.answerTo("Yes");
  at.failing.record = true;
  await assert.rejects(at.callTool(newCall({ answer })), /journal full/);
  assert.equal(at.seen.length, 0);
});

Deno.test("an answer for other arguments, another tool or another actor asks again", async () => {
  await using at = await fixture();
  const changes: Partial<Call>[] = [
    { arguments: { path: "b" } },
    { id: toolId("fs", "edit") },
    { actor: "ada" },
  ];
  for (const change of changes) {
    const answer = await at.answerTo("Yes");
    assert.equal((await at.callTool(newCall({ answer, ...change }))).kind, "ask");
  }
  const forged = { handle: "A".repeat(43), reply: "Yes" } as const;
  assert.equal((await at.callTool(newCall({ answer: forged }))).kind, "ask");
  assert.equal(at.seen.length, 0);
});

Deno.test("Always is kept before the call runs", async () => {
  await using at = await fixture();
  const answer = await at.answerTo("Always");
  assert.deepEqual(await at.callTool(newCall({ answer })), DONE);
  assert.deepEqual(at.order, ["kept", "always", "ran"]);
});

Deno.test("Always that cannot be kept lets the call run once, and that is recorded", async () => {
  await using at = await fixture();
  const answer = await at.answerTo("Always");
  at.failing.always = true;
  assert.deepEqual(await at.callTool(newCall({ answer })), DONE);
  assert.deepEqual(at.order, ["always_not_kept", "ran"]);
  assert.deepEqual(at.events.at(-1)?.detail, { why: "disk full" });
  assert.equal((await at.callTool(newCall())).kind, "ask");
});

Deno.test("Always where it cannot win is neither offered nor taken", async () => {
  await using at = await fixture({ offered: false });
  const outcome = await at.callTool(newCall());
  assert.ok(outcome.kind === "ask" && !offers(outcome.question, "Always"));
  const answer = await at.answerTo("Always");
  assert.equal((await at.callTool(newCall({ answer }))).kind, "ask");
  assert.deepEqual(at.seen, []);
  assert.equal(at.order.includes("kept"), false);
});

Deno.test("Never denies the tool and runs nothing", async () => {
  await using at = await fixture();
  const answer = await at.answerTo("Never");
  await assert.rejects(at.callTool(newCall({ answer })), { code: "APPROVAL_DECLINED" });
  assert.deepEqual(at.order, ["denied fs:write", "never"]);
  assert.deepEqual(at.seen, []);
});

const READS = { reads: true, destroys: false };

const BOTH: ToolSet = {
  reply: "Reads",
  tools: [
    { id: toolId("fs", "write"), definition: "d", effect: READS },
    { id: toolId("fs", "other"), definition: "e", effect: READS, lines: ["| description: Other"] },
  ],
};

Deno.test("an answer for several tools keeps a rule for each and marks their texts as read", async () => {
  await using at = await fixture({ lasting: { sets: [BOTH] } });
  const answer = await at.answerTo("Reads");
  assert.deepEqual(await at.callTool(newCall({ answer })), DONE);
  assert.deepEqual(at.order, ["kept 2", "always", "ran"]);
  assert.deepEqual(at.events.at(-1)?.detail, { tools: ["fs:write", "fs:other"] });
  assert.deepEqual(["d", "e"].map((hash) => at.approvals.hasRead(hash)), [false, true]);
});

Deno.test("an answer for several tools counts once if one of them changed since the question", async () => {
  const lasting = { sets: [BOTH] };
  await using at = await fixture({ lasting });
  const answer = await at.answerTo("Reads");
  const [first, second] = BOTH.tools;
  assert.ok(first !== undefined && second !== undefined);
  lasting.sets = [{ ...BOTH, tools: [first, { ...second, definition: "f" }] }];
  assert.deepEqual(await at.callTool(newCall({ answer })), DONE);
  assert.deepEqual(at.order, ["always_not_kept", "approved", "ran"]);
  assert.deepEqual(["e", "f"].map((hash) => at.approvals.hasRead(hash)), [false, false]);
});

Deno.test("No and cancelled have no side effect", async () => {
  await using at = await fixture();
  const said = { No: "answered no", cancelled: "dismissed the question" };
  for (const reply of ["No", "cancelled"] as const) {
    const answer = await at.answerTo(reply);
    await assert.rejects(at.callTool(newCall({ answer })), {
      code: "APPROVAL_DECLINED",
      message: `Cannot run "fs:write": the user ${said[reply]}`,
    });
    assert.deepEqual(at.order, ["declined"]);
    const again = { handle: answer.handle, reply: "Yes" } as const;
    assert.equal((await at.callTool(newCall({ answer: again }))).kind, "ask");
  }
  assert.deepEqual(at.seen, []);
});

Deno.test("a refusal that no person can have given sends the question to the terminal", async () => {
  await using at = await fixture();
  const answer = await at.answerTo("cancelled");
  at.clock.now -= 900;
  const outcome = await at.callTool(newCall({ answer }));
  assert.ok(outcome.kind === "ask" && outcome.question.terminalOnly);
  at.clock.now += 1_000;
  const yes = { handle: outcome.question.handle, reply: "Yes" } as const;
  assert.equal((await at.callTool(newCall({ answer: yes }))).kind, "ask");
  assert.deepEqual(at.seen, []);
});

Deno.test("an approval given at a terminal lets exactly that call pass, once", async () => {
  await using at = await fixture();
  const { handle } = await at.answerTo("Yes");
  const left = await at.approvals.saveForTerminal(handle);
  assert.equal(left?.id, digestOf([subject(newCall())]));
  assert.equal((await at.callTool(newCall())).kind, "ask");
  await at.approvals.grant(left.id);
  at.order.length = 0;
  assert.equal((await at.callTool(newCall({ arguments: { path: "b" } }))).kind, "ask");
  assert.deepEqual(await at.callTool(newCall()), DONE);
  assert.deepEqual(at.order, ["asked", "approved", "ran"]);
  assert.equal((await at.callTool(newCall())).kind, "ask");
  assert.deepEqual([...Deno.readDirSync(join(at.home, "approved"))], []);
});
