import assert from "node:assert/strict";
import process from "node:process";
import { setImmediate } from "node:timers";
import type { ApprovalAnswer, Call, Outcome, ProgressReport } from "../protocol/call.ts";
import { NO_CLIENT, textResult } from "../protocol/call.ts";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { limitsOf } from "../config/limits.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { parseToolId } from "../core/tool_id.ts";
import { type PlanRequest, Plans } from "./plans.ts";
import { Results } from "./results.ts";
import { WaitingRuns } from "./waiting_runs.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

type Tool = (call: Call) => Json | Promise<Json>;

const LIMITS = {
  planTasks: 20,
  concurrentCalls: 256,
  callMaxMs: 60_000,
  inlineBytes: 0,
  inputBytes: 1_000_000,
  keptBytes: 100_000,
  keptMs: 60_000,
  waitingRuns: 2,
};

/** Creates plans with the tools of a test. If a tool throws a text, its result is an error. */
function house(tools: Readonly<Record<string, Tool>>, limits: Partial<typeof LIMITS> = {}) {
  const ran: string[] = [];
  const events: [string, JsonObject][] = [];
  const askedFor: JsonObject[][] = [];
  const clock = { now: 0 };
  const policy = { config: { limits: { ...limitsOf({}), ...LIMITS, ...limits } } };
  const results = new Results(policy, () => clock.now);
  const toolOf = (call: Call) => tools[call.id.slice(2)];
  const state = { deny: "", ask: (): Promise<void> => Promise.resolve() };
  const plans = new Plans({
    results,
    policy,
    waiting: new WaitingRuns(policy),
    tools: { idOf: (name) => parseToolId(name) ?? assert.fail(`no tool ${name}`) },
    preflight: {
      check: (call, open) => {
        if (toolOf(call) === undefined) throw new PmlError("UNKNOWN_TOOL", `no ${call.id}`);
        if (call.id === state.deny) throw new PmlError("PERMISSION_DENIED", "denied");
        assert.ok([...open].every((name) => call.arguments[name] === null));
        return Promise.resolve(true);
      },
      askForAll: async (calls) => {
        askedFor.push(calls.map(({ arguments: args }) => args));
        await state.ask();
        return new Map<string, ApprovalAnswer>(
          calls.map(({ callId }) => [callId, { handle: callId, reply: "Yes" }]),
        );
      },
    },
    callTool: async (call): Promise<Outcome> => {
      ran.push(`${call.id.slice(2)}(${JSON.stringify(call.arguments.x) ?? ""})`);
      assert.equal(call.via, "plan");
      try {
        const structuredContent = await toolOf(call)?.(call);
        return { kind: "result", result: { content: [], structuredContent } };
      } catch (error) {
        if (typeof error !== "string") throw error;
        return { kind: "result", result: { ...textResult(error), isError: true } };
      }
    },
    journal: { record: (event, { about }) => void events.push([event, about ?? {}]) },
  });
  const run = async (tasks: readonly JsonObject[], more: Partial<PlanRequest> = {}) => {
    const signal = new AbortController().signal;
    const always = { actor: "local", signal, client: NO_CLIENT };
    const outcome = await plans.run({ plan: { tasks }, ...always, ...more });
    return { ...outcome, said: JSON.parse(String(outcome.result.content[0]?.text)) };
  };
  return { plans, results, run, ran, events, askedFor, state, clock };
}

function task(id: string, tool: string, more: JsonObject = {}): JsonObject {
  return { id, tool: `s:${tool}`, ...more };
}

const taking = (text: string): JsonObject => ({ arguments: { x: { $ref: text } } });
const echo: Tool = ({ arguments: { x } }) => x ?? null;

Deno.test("Plans.run() starts each task as soon as the tasks that it needs are done", async () => {
  const gates = new Map(["a", "b"].map((x) => [x, Promise.withResolvers<Json>()]));
  const at = house({ wait: ({ arguments: { x } }) => gates.get(String(x))?.promise ?? null, echo });
  const outcome = at.run([
    task("a", "wait", { arguments: { x: "a" } }),
    task("b", "wait", { arguments: { x: "b" } }),
    task("c", "echo", taking("b#/y")),
    task("d", "echo", taking("a")),
  ]);
  gates.get("b")?.resolve({ y: 1 });
  // `a` is a layer above `d` only, so `c` does not wait for it.
  while (!at.ran.includes("echo(1)")) await new Promise((resolve) => setTimeout(resolve));
  gates.get("a")?.resolve(2);
  const { said, isDone, output, run } = await outcome;
  assert.ok(isDone);
  assert.deepEqual(output, { c: 1, d: 2 });
  assert.equal(said.done.c.output, 1);
  assert.ok(said.done.a.ms >= 0);
  assert.deepEqual(at.events.map(([event, about]) => [event, about.run, about.done]), [
    ["plan began", run, undefined],
    ["plan ended", run, 4],
  ]);
});

Deno.test("Plans.run() stops only tasks that need a failed one, and does not repeat done tasks", async () => {
  let isWell = false;
  const at = house({
    echo,
    fails: () => isWell ? "well" : Promise.reject("it is broken"),
    throws: () => Promise.reject(new PmlError("TIMED_OUT", "too late")),
  });
  const tasks = [
    task("a", "echo", { arguments: { x: 1 } }),
    task("bad", "fails"),
    task("late", "throws"),
    task("after", "echo", { ...taking("bad"), depends_on: ["a"] }),
    task("last", "echo", { depends_on: ["after"] }),
    task("free", "echo", taking("a")),
    task("no", "echo", { when: false }),
    task("nor", "echo", { depends_on: ["no"] }),
  ];
  const { said, result, isDone, run } = await at.run(tasks);
  assert.ok(!isDone && result.isError);
  assert.deepEqual(Object.keys(said.done), ["a", "free"]);
  assert.equal(said.failed.bad.error.message, "it is broken");
  assert.equal(said.failed.late.error.code, "TIMED_OUT");
  assert.deepEqual(said.not_run, {
    after: 'it needs "bad", which failed',
    last: 'it needs "after", which did not run',
  });
  assert.deepEqual(said.skipped, {
    no: "`when` is false",
    nor: 'it needs "no", which was skipped',
  });
  isWell = true;
  at.ran.length = 0;
  const again = await at.run(tasks.filter(({ id }) => id !== "late"), { resume: run });
  assert.ok(again.isDone && again.run === run);
  assert.deepEqual(at.ran, ["fails()", 'echo("well")', "echo()"]);
  assert.equal(again.said.done.a, "earlier");
  // Without a plan the last one is resumed, and here all its tasks are done.
  at.ran.length = 0;
  assert.ok((await at.run([], { resume: run, plan: undefined })).isDone);
  assert.deepEqual(at.ran, []);
});

Deno.test("Plans.run() resumes only the same tasks, for the same identity, and once at a time", async () => {
  const at = house({ echo, fails: () => Promise.reject("no") });
  const tasks = [task("a", "echo", { arguments: { x: 1 } }), task("b", "fails")];
  const { run: resume } = await at.run(tasks);
  const changed = [task("a", "echo", { arguments: { x: 2 } }), task("b", "fails")];
  await assert.rejects(at.run(changed, { resume }), /"a" changed/);
  await assert.rejects(at.run(tasks, { resume, actor: "other" }), /it is not kept/);
  await assert.rejects(at.run(tasks, { resume: "aaaaaaaaaaaa" }), /it is not kept/);
  const open = Promise.withResolvers<void>();
  at.state.ask = () => open.promise;
  const first = at.run(tasks, { resume });
  await assert.rejects(at.run(tasks, { resume }), /it is still running/);
  open.resolve();
  await first;
  at.clock.now += 60_001;
  await assert.rejects(at.run(tasks, { resume }), /it is not kept[^]*/);
});

Deno.test("Plans.run() calls a tool for each element and repeats only failed calls", async () => {
  const broken = new Set<Json>([2]);
  const each: Tool = ({ arguments: { x = null } }) => broken.has(x) ? Promise.reject("no") : x;
  const at = house({ list: () => [1, 2, 3], each });
  const tasks = [
    task("a", "list"),
    task("b", "each", { for_each: { $ref: "a" }, ...taking("$item") }),
    task("c", "each", taking("b#/2")),
  ];
  const { said, run } = await at.run(tasks);
  assert.deepEqual([said.failed.b.of, said.failed.b.done], [3, 2]);
  assert.deepEqual(Object.keys(said.failed.b.errors), ["1"]);
  assert.equal(said.may_have_run, undefined);
  const changed = tasks.map((one) => one.id === "b" ? { ...one, tool: "s:list" } : one);
  await assert.rejects(
    at.run(changed, { resume: run }),
    /"b" changed/,
  );
  broken.clear();
  at.ran.length = 0;
  const again = await at.run(tasks, { resume: run });
  assert.deepEqual(at.ran, ["each(2)", "each(3)"]);
  assert.deepEqual(again.said.done.b.output, [1, 2, 3]);
  at.ran.length = 0;
  assert.ok((await at.run(tasks, { resume: run })).isDone);
  assert.deepEqual(at.ran, []);
});

Deno.test("Plans.run() runs no part of a refused plan and does not ask the user (PM8)", async () => {
  const at = house({ echo });
  at.state.deny = "s:denied";
  const first = task("first", "echo", { arguments: { x: 1 } });
  const table: readonly (readonly [RegExp, JsonObject])[] = [
    [/task "x": no s:nope/, task("x", "nope")],
    [/task "x": .*`for_each` is not an array/, task("x", "echo", { for_each: { $ref: "k.a" } })],
    [/task "x": Cannot run 21 tasks/, task("x", "echo", { for_each: Array(21).fill(1) })],
    [/Cannot run 21 tasks/, task("x", "echo", { for_each: Array(20).fill(1) })],
    [/there is no task "q"/, task("x", "echo", { depends_on: ["q"] })],
    [/tasks need each other/, task("x", "echo", { depends_on: ["x"] })],
  ];
  at.results.put("local", 1);
  for (const [wanted, wrong] of table) {
    await assert.rejects(at.run([first, wrong]), /Cannot run the plan/, String(wanted));
  }
  assert.deepEqual([at.ran, at.askedFor], [[], []]);
  at.state.ask = () => Promise.reject(new PmlError("APPROVAL_DECLINED", "no"));
  await assert.rejects(at.run([first]), { code: "APPROVAL_DECLINED" });
  assert.deepEqual(at.ran, []);
});

Deno.test("Plans.run() asks once about all known calls, including those of literal elements", async () => {
  const at = house({ echo });
  await at.run([
    task("a", "echo", { arguments: { x: 1 } }),
    task("b", "echo", taking("a")),
    task("c", "echo", { for_each: [2, 3], ...taking("$item") }),
  ]);
  assert.deepEqual(at.askedFor, [[{ x: 1 }, { x: 2 }, { x: 3 }]]);
});

Deno.test("Plans.run() limits the calls of `for_each` and the concurrent calls", async () => {
  let [now, most] = [0, 0];
  const slow: Tool = async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve));
    return --now;
  };
  const at = house({ list: () => Array(20).fill(1), slow }, { concurrentCalls: 1 });
  const each = (id: string, from: Json) => task(id, "slow", { for_each: from });
  const { said } = await at.run([task("a", "list"), each("b", { $ref: "a" })]);
  assert.match(JSON.stringify(said), /Cannot run 21 tasks: limits\.plan_tasks is 20/);
  assert.deepEqual(at.ran, ["list()"]);
  await at.run([each("b", Array(20).fill(1))]);
  assert.equal(most, 8);
});

Deno.test("Plans.run() ends its tasks when the client cancels or the time limit is reached", async () => {
  const hang: Tool = ({ cancellation: { signal } }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const tasks = [task("a", "hang"), task("b", "hang", { depends_on: ["a"] })];
  const late = await house({ hang }, { callMaxMs: 20 }).run(tasks);
  assert.equal(late.said.failed.a.error.code, "TIMED_OUT");
  const at = house({ hang });
  const abort = new AbortController();
  const cancelled = at.run(tasks, { signal: abort.signal });
  while (at.ran.length === 0) await new Promise((resolve) => setTimeout(resolve));
  abort.abort(new PmlError("CANCELLED", "the client left"));
  const { said } = await cancelled;
  assert.equal(said.failed.a.error.code, "CANCELLED");
  assert.deepEqual(at.ran, ["hang()"]);
});

Deno.test("Plans.run() reports the number of finished tasks", async () => {
  const told: ProgressReport[] = [];
  const at = house({ echo });
  const onProgress = (progress: ProgressReport) => told.push(progress);
  await at.run([task("a", "echo"), task("b", "echo", { for_each: [1, 2] })], {
    client: { onProgress },
  });
  // The number of elements is known after the first task.
  assert.deepEqual(told.map(({ progress, total }) => [progress, total]), [[1, 2], [2, 3], [3, 3]]);
  assert.ok(told.some(({ message }) => /^a: done \(\d of \d\)$/.test(message ?? "")));
});

Deno.test("Plans.run() excludes large outputs, including those that are too large to keep", async () => {
  const big = (count: number): Tool => () => Array.from({ length: count }, (_, n) => ({ n }));
  const at = house({ big: big(1_000), huge: big(20_000), echo });
  const tasks = [
    task("big", "big"),
    task("part", "echo", taking("big#/999/n")),
    task("huge", "huge"),
    task("after", "echo", { depends_on: ["huge"] }),
    task("none", "echo", taking("huge#/0")),
  ];
  const { said, run } = await at.run(tasks);
  assert.equal(said.done.big.kept, `pml://results/${run}.big`);
  assert.equal(said.done.big.shape, "array(1000) of {n: number}");
  assert.match(said.read, new RegExp(`"pml://results/${run}\\.TASK\\?offset`));
  assert.equal(said.done.part.output, 999);
  assert.match(said.done.huge.why, /too large to keep/);
  assert.match(said.failed.none.error.message, /too large to keep/);
  const { said: later } = await at.run([task("x", "echo", taking(`${run}.big#/5/n`))]);
  assert.equal(later.done.x.output, 5);
  at.ran.length = 0;
  await at.run(tasks, { resume: run });
  assert.deepEqual(at.ran, [], "a task that was done ran again");
});

Deno.test("Plans.run() accepts a change of a task that has not run", async () => {
  const at = house({ echo, fails: () => Promise.reject("no") });
  const each = (tool: string) => [task("b", tool, { for_each: [1, 2], ...taking("$item") })];
  const { run: resume } = await at.run(each("fails"));
  assert.deepEqual((await at.run(each("echo"), { resume })).said.done.b.output, [1, 2]);
  const none = [task("b", "fails", { for_each: [] }), task("c", "fails")];
  const { run } = await at.run(none);
  await assert.rejects(at.run(each("echo"), { resume: run }), /"b" changed after the run/);
});

Deno.test("Plans.run() reports which failed calls may have run", async () => {
  const fails = (code: ErrorCode, detail?: JsonObject): Tool => () =>
    Promise.reject(new PmlError(code, "no", detail && { detail }));
  const at = house({
    late: fails("TIMED_OUT"),
    large: fails("RESULT_TOO_LARGE"),
    gone: fails("UPSTREAM_DOWN", { may_have_run: true }),
    never: fails("UPSTREAM_DOWN", { may_have_run: false }),
    denied: fails("PERMISSION_DENIED"),
    said: () => Promise.reject("it says that it failed"),
  });
  const names = ["late", "large", "gone", "never", "denied", "said"];
  const { said } = await at.run(names.map((name) => task(name, name)));
  assert.deepEqual(said.may_have_run, ["late", "large", "gone"]);
  assertGolden("plan/some calls failed", said.retry, { RUN: `${said.run}` });
  // Calls that waited for their turn did not run.
  const hang: Tool = ({ cancellation: { signal } }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const slow = house({ hang }, { callMaxMs: 50, concurrentCalls: 1 });
  const ids = Array.from({ length: 10 }, (_, n) => `t${n}`);
  const { said: ended } = await slow.run(ids.map((id) => task(id, "hang")));
  assert.equal(ended.failed.t9.error.code, "TIMED_OUT");
  assert.deepEqual(ended.may_have_run, ids.slice(0, 8));
});

Deno.test("Plans.run() blocks the thread only briefly, for any size of elements", async () => {
  const rows = Array.from(
    { length: 20_000 },
    (_, n) => ({ n, text: "abcdefghijklmnopqrstuvwxyz" }),
  );
  const at = house(
    { rows: () => rows, text: () => "y".repeat(1_000_000), echo: () => 1 },
    { planTasks: 1_010, inputBytes: 8_000_000, keptBytes: 64_000_000 },
  );
  const items = Array.from({ length: 1_000 }, (_, n) => n);
  const each = (id: string, args: JsonObject) => task(id, "echo", { for_each: items, ...args });
  const wide = Array.from({ length: 50_000 }, (_, n) => n);
  const plans = [
    [task("rows", "rows"), each("a", { arguments: { all: { $ref: "rows" } } })],
    [task("text", "text"), each("b", { arguments: { all: { $ref: "text" } } })],
    [each("c", { arguments: { wide, at: { $ref: "$item" } } })],
  ];
  for (const tasks of plans) {
    let [turns, isOver] = [0, false];
    const count = () => void (isOver || (turns++, setImmediate(count)));
    count();
    const cpu = process.cpuUsage();
    await at.run(tasks);
    isOver = true;
    const { user, system } = process.cpuUsage(cpu);
    // Without pauses, or with a full scan per element, this takes seconds.
    assert.ok(turns > 900, `others had ${turns} turns`);
    assert.ok(user + system < 700_000, `it took ${(user + system) / 1_000} ms`);
  }
});
