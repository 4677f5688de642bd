/**
 * Plans that exceed their permissions: denied steps, questions whose subject changes, oversized
 * plans, and a PML that is killed in the middle of a plan.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { FakeRegistry, moduleEntry } from "../kit/fake_registry.ts";
import { ERAS, type Message } from "../kit/json_rpc.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { until } from "../kit/wait.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";
import { assertServes, codeOf, endWell, journalOf, ofKind, textOf } from "./oracles.ts";
import { answerOf, picked, questionOf } from "./questions.ts";
import { makeScene } from "./stage.ts";

type Task = Readonly<Record<string, unknown>>;

const CAN_ASK = { elicitation: { form: {} } } as const;

function planOf(...tasks: readonly Task[]) {
  return { name: "execute_workflow", arguments: { plan: { tasks } } };
}

function file(tool: string, args: Task, more: Task = {}): Task {
  return { id: tool, tool: `filesystem:${tool}`, arguments: args, ...more };
}

function writing(path: unknown, content: unknown = "made", more: Task = {}): Task {
  return { ...file("write_file", { path, content }), id: "write", ...more };
}

const FIRST: Task = { ...writing("first.txt"), id: "first" };
const MOVE = { source: "good.txt", destination: "moved.txt" };
const RULES = {
  version: 1,
  permissions: {
    allow: ["filesystem:*"],
    deny: ["filesystem:move_file", "filesystem:write_file(path=secret*)"],
  },
} as const;

/** Steps that a rule denies, in several forms. */
const DENIED: Readonly<Record<string, Task>> = {
  "by name": file("move_file", MOVE),
  "by its name on the wire": { id: "x", tool: "filesystem__move_file", arguments: MOVE },
  "by a client's name": { id: "x", tool: "mcp__pml__filesystem__move_file", arguments: MOVE },
  "after another": file("move_file", MOVE, { depends_on: ["first"] }),
  "with arguments that are not known": file("move_file", { ...MOVE, source: { $ref: "first" } }),
  "under a condition": file("move_file", MOVE, { when: false }),
  "for elements that are not known": file("move_file", MOVE, { for_each: { $ref: "first" } }),
  "by an argument": writing("secret.txt"),
  "by an argument beside one that is not known": writing("secret.txt", { $ref: "first" }),
  "by an argument of one element": writing({ $ref: "$item" }, "x", {
    for_each: ["fine.txt", "secret.txt"],
  }),
  "by an argument in $literal": writing({ $literal: "secret.txt" }),
};

Deno.test("a plan with a denied step runs nothing, and asks nothing (PM8)", async () => {
  await using scene = await makeScene({ era: "2025-11-25", pml: RULES, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  for (const [how, step] of Object.entries(DENIED)) {
    const answer = await answerOf(pml, planOf(FIRST, step));
    assert.equal(codeOf(answer), "PERMISSION_DENIED", `${how}: ${textOf(answer)}`);
  }
  assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"]);
  await endWell(ws, pml, { calls: 1 });
});

Deno.test("a step that is found to be denied while the plan runs does not run (PM8)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", pml: RULES });
  const { ws, pml } = scene;
  await writeFile(ws.file("name.txt"), "secret.txt");
  const answer = await answerOf(
    pml,
    planOf(
      file("read_file", { path: "name.txt" }),
      writing({ $ref: "read_file" }),
      { ...FIRST, depends_on: ["read_file"] },
    ),
  );
  const { done, failed } = JSON.parse(textOf(answer));
  assert.deepEqual(Object.keys(done), ["read_file", "first"]);
  assert.equal(failed.write.error.code, "PERMISSION_DENIED");
  assert.deepEqual((await readdir(ws.path)).filter((name) => name.startsWith("secret")), []);
  await endWell(ws, pml);
});

Deno.test("a plan cannot use a meta-tool (PM8)", async () => {
  await using scene = await makeScene({ era: "2025-11-25", pml: RULES });
  const { ws, pml } = scene;
  const inner = { calls: [{ tool: "filesystem:move_file", arguments: MOVE }] };
  for (
    const tool of ["batch", "call", "execute_workflow", "execute_code", "pml:batch", "search"]
  ) {
    const answer = await answerOf(pml, planOf(FIRST, { id: "x", tool, arguments: inner }));
    assert.equal(codeOf(answer), "UNKNOWN_TOOL", `${tool}: ${textOf(answer)}`);
  }
  await endWell(ws, pml, { calls: 1 });
});

Deno.test("an approval of a plan does not cover later changes (PM2, PM12)", async () => {
  await using scene = await makeScene({
    era: "2026-07-28",
    ...ASKS,
    trusted: false,
    capabilities: CAN_ASK,
  });
  const { ws, pml } = scene;
  const plan = planOf(mark("a"), writing("made.txt"));
  const question = await questionOf(pml, plan);
  await writeFile(ws.file(".pml.json"), JSON.stringify({ ...ASKS.pml, "permissions": {} }));
  assert.equal(codeOf(await question.answer(picked("Yes"))), "APPROVAL_STALE");
  assert.deepEqual(await marksIn(ws), []);
  assert.equal(ofKind(await journalOf(ws), "start").length, 0);
  await pml.close();
});

Deno.test("a rule that is added while a plan asks stops the plan", async () => {
  const deny = {
    ...ASKS.pml,
    permissions: { ask: ["marks:*"], deny: ["filesystem:write_file"] },
  };
  const texts: string[] = [];
  const answer = async (_: string, { message }: Record<string, unknown>) => {
    if (texts.push(String(message)) > 1) return picked("Yes");
    await writeFile(scene.ws.file(".pml.json"), JSON.stringify(deny));
    await until(() => scene.pml.stderr.includes("The configuration was applied"));
    return picked("Yes");
  };
  await using scene = await makeScene({ era: "2025-11-25", ...ASKS, answer });
  const { ws, pml } = scene;
  const { name, arguments: args } = planOf(mark("a"), writing("made.txt"));
  const refused = await pml.callTool(name, args);
  assert.equal(codeOf(refused), "PERMISSION_DENIED", textOf(refused));
  // The approval applied to other rules, so PML asked again about the remaining steps.
  const isIn = (text: string) => texts.map((each) => each.includes(text));
  assert.deepEqual([isIn("marks"), isIn("made.txt")], [[true, true], [true, false]]);
  assert.equal(ofKind(await journalOf(ws), "start").length, 0);
  assert.deepEqual(await marksIn(ws), []);
  await endWell(ws, pml);
});

for (const via of ["execute_workflow", "batch"]) {
  Deno.test(`the first use of a registry's server is part of the only question of ${via}`, async () => {
    await using registry = await FakeRegistry.open([await offered("one"), await offered("two")]);
    await using ws = await makeWorkspace({
      env: { PML_REGISTRIES: registry.url },
      pml: { version: 1, permissions: { allow: ["*"] } },
    });
    await using pml = new RawStdio(ws, { era: "2026-07-28", capabilities: CAN_ASK });
    await pml.open();
    const tasks = ["one", "two"].map((name) => ({ id: name, tool: `${name}:go` }));
    const calls = via === "batch" ? { calls: tasks } : { plan: { tasks } };
    const question = await questionOf(pml, { name: via, arguments: calls });
    assert.match(question.text, /these 2 calls[^]*use "one"[^]*use "two"/);
    assert.equal(ofKind(await journalOf(ws), "start").length, 0);
    assert.match(textOf(await question.answer(picked("Yes"))), /one went[^]*two went/);
    // They are approved now, as if PML had asked about each.
    assert.match(textOf(await answerOf(pml, { name: via, arguments: calls })), /two went/);
    assert.equal((await pml.close()).code, 0);
  });
}

Deno.test("an oversized plan is refused soon, before anything runs (RX7)", async () => {
  await using scene = await makeScene({ pml: RULES });
  const { ws, pml } = scene;
  const nothing = (at: number) => ({ id: `t${at}`, tool: "filesystem:read_file" });
  const many = (count: number) => Array.from({ length: count }, (_, at) => nothing(at));
  let deep: unknown = { $ref: "first" };
  for (let depth = 0; depth < 3_000; depth++) deep = { deep };
  let condition: unknown = true;
  for (let depth = 0; depth < 3_000; depth++) condition = { not: condition };
  const table: Readonly<Record<string, readonly [RegExp, readonly Task[]]>> = {
    "1e5 tasks": [/Cannot run 100001 tasks: limits\.plan_tasks is 100/, many(100_000)],
    "a cycle": [
      /tasks need each other: "t0" needs "t1"/,
      many(90).map((task, at) => ({ ...task, depends_on: [`t${(at + 1) % 90}`] })),
    ],
    "1e4 elements": [/limits\.plan_tasks is 100/, [
      writing({ $ref: "$item" }, "x", { for_each: Array(10_000).fill("x") }),
    ]],
    "elements of many tasks": [
      /Cannot run 121 tasks/,
      many(60).map((task) => ({ ...task, arguments: { path: "x" }, for_each: [1, 2] })),
    ],
    "1e5 references": [/10000 references or more/, [
      writing("x", Array(100_000).fill({ $ref: "first" })),
    ]],
    "deep arguments": [/nested deeper than 64/, [writing("x", deep)]],
    "a deep condition": [/nested deeper than 64/, [writing("x", "x", { when: condition })]],
  };
  for (const [what, [wanted, tasks]] of Object.entries(table)) {
    const since = performance.now();
    const answer = await answerOf(pml, planOf(FIRST, ...tasks));
    assert.match(textOf(answer), wanted, what);
    assert.ok(performance.now() - since < 8_000, `${what} took long`);
  }
  // Each reference is short, but its value is long.
  await writeFile(ws.file("large.txt"), "x".repeat(1_000_000));
  const list = Array(9_000).fill({ $ref: "read_file" });
  const since = performance.now();
  const answer = await answerOf(
    pml,
    planOf(file("read_file", { path: "large.txt" }), writing("x", list)),
  );
  assert.match(textOf(answer), /INPUT_TOO_LARGE/);
  assert.ok(performance.now() - since < 8_000);
  await endWell(ws, pml, { calls: 2 });
});

Deno.test("the journal contains the steps that ran before PML was killed, and none runs twice", async () => {
  for (let round = 0; round < 6; round++) await killedOnce(round);
});

/** Kills PML somewhere in a plan with questions, and checks which steps ran. */
async function killedOnce(round: number): Promise<void> {
  const era = ERAS[round % 2] ?? "2025-11-25";
  const answer = () => picked("Yes");
  await using ws = await makeWorkspace({ ...ASKS, files: { ...ASKS.files, "good.txt": "good\n" } });
  const tasks = Array.from({ length: 12 }, (_, at) =>
    mark(
      `t${at}`,
      at < 4 ? {} : {
        // Those that use an output ask separately.
        arguments: { id: `t${at}`, from: { $ref: `t${at - 4}` } },
      },
    ));
  const ms = Math.random() * (round === 0 ? 100 : 20);
  {
    // The test kills it.
    await using pml = new RawStdio(ws, { ownProcess: true, era, answer });
    await pml.open();
    await assertServes(pml);
    const { name, arguments: args } = planOf(...tasks);
    const over = pml.callTool(name, args, { rounds: 20 }).catch(() => {}); // it may never arrive
    // Before the question, in the middle of the first calls, during other questions, and at the
    // end.
    await until(async () => (await marksIn(ws)).length >= 2 * round);
    await new Promise((resolve) => setTimeout(resolve, ms));
    await pml.kill("SIGKILL");
    await over;
    await pml.watch.assertNothingLeft();
  }
  const ran = await marksIn(ws);
  const lines = ofKind(await journalOf(ws), "start");
  const what = `killed after ${ms.toFixed()} ms`;
  assert.equal(new Set(ran).size, ran.length, `${what}: ran twice: ${ran}`);
  const begun = lines.filter(({ tool }) => tool === "marks:mark");
  assert.ok(begun.every(({ via, run }) => via === "plan" && run !== undefined), what);
  assert.ok(ran.length <= begun.length, `${what}: ${ran.length} ran, ${begun.length} journalled`);
  // It has no state of the killed process.
  await using again = new RawStdio(ws, { ownProcess: true, era, answer });
  await again.open();
  const run = begun[0]?.run ?? "aaaaaaaaaaaa";
  const refused: Message = await again.callTool("execute_workflow", { resume: run });
  assert.match(textOf(refused), /it is not kept/);
  assert.deepEqual(await marksIn(ws), ran, `${what}: something ran after the restart`);
  assert.equal((await again.close()).code, 0);
}

/** A module that appends a mark each time it runs. */
const ASKS = {
  files: {
    "marks.js": `
      export const __meta__ = {
        name: "marks", version: "1.0.0", permissions: { read: ["."], write: ["."] },
        tools: { mark: { inputSchema: { type: "object" } } },
      };
      export async function mark({ id }) {
        await Deno.writeTextFile("mark-" + id + "-" + crypto.randomUUID(), "");
        await new Promise((resolve) => setTimeout(resolve, 20));
        return id;
      }`,
  },
  pml: {
    version: 1,
    permissions: { ask: ["marks:*"], allow: ["filesystem:read_file"] },
    private_mcps: { marks: { type: "deno", path: "marks.js" } },
  },
} as const;

function mark(id: string, more: Task = {}): Task {
  return { id, tool: "marks:mark", arguments: { id }, ...more };
}

/** Returns the ids of the marks in a workspace, one for each run of the tool. */
async function marksIn(ws: Workspace): Promise<readonly string[]> {
  return (await readdir(ws.path)).flatMap((name) => /^mark-(t?\w+)-/.exec(name)?.[1] ?? []).sort();
}

function offered(name: string) {
  return moduleEntry(
    name,
    `export const __meta__ = {
      name: "${name}", version: "1.0.0",
      tools: { go: { description: "Goes away", inputSchema: { type: "object" } } },
    };
    export function go() { return "${name} went"; }`,
  );
}
