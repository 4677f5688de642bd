import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { ERAS, type Message } from "../kit/json_rpc.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { codeOf, endWell, eventsOf } from "./oracles.ts";
import { outcomeOf, picked, questionOf, type ToolCall } from "./questions.ts";
import { makeScene, type Scene } from "./stage.ts";

const READS = { version: 1, permissions: { allow: ["filesystem:read_file"] } } as const;
const CAN_ASK = { elicitation: { form: {} } } as const;
const WRITE = writing("made.txt", "made");
const YES = { approval: picked("Yes") } as const;

/** Forged versions of the state of an open question. */
const FORGED: Readonly<Record<string, (state: string) => unknown>> = {
  "another random one": (state) => state.split("").reverse().join(""),
  "an empty one": () => "",
  "a truncated one": (state) => state.slice(0, -1),
  "its first half": (state) => state.slice(0, state.length / 2),
  "a longer one": (state) => `${state}A`,
  "a padded one": (state) => `${state}=`,
  "one with a blank": (state) => ` ${state}`,
  "one in other case": (state) => state.replace(/[a-z]/, (letter) => letter.toUpperCase()),
  "one with its first character changed": (state) =>
    (state[0] === "A" ? "B" : "A") + state.slice(1),
  "a number": () => 1,
  "nothing": () => null,
  "an object": (state) => ({ state }),
  "a list": (state) => [state],
  "a name of every object": () => "__proto__",
};

Deno.test("a forged state asks again or is refused, and the true one remains valid (PM11)", async () => {
  await using scene = await scenery();
  const { ws, pml } = scene;
  const question = await questionOf(pml, WRITE);
  for (const [name, forge] of Object.entries(FORGED)) {
    const requestState = forge(question.state);
    const answer = await retry(pml, WRITE, { requestState, inputResponses: YES });
    assertNothing(answer, name);
    assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"], name);
  }
  assertNothing(await retry(pml, WRITE, { inputResponses: YES }), "no state");
  assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"]);
  assert.equal(codeOf(await question.answer(picked("Yes"))), undefined);
  assert.equal(await readFile(ws.file("made.txt"), "utf8"), "made");
  await endWell(ws, pml);
});

/** Answers without a valid reply, with the true state. */
const BESIDE: Readonly<Record<string, unknown>> = {
  "no answers": undefined,
  "none": {},
  "another key": { other: picked("Yes") },
  "the prototype": JSON.parse(`{"__proto__":{"approval":${JSON.stringify(picked("Yes"))}}}`),
  "a list": [picked("Yes")],
};

Deno.test("a true state with an answer to something else runs nothing (PM11)", async () => {
  await using scene = await scenery();
  const { ws, pml } = scene;
  for (const [name, inputResponses] of Object.entries(BESIDE)) {
    const { state: requestState } = await questionOf(pml, WRITE);
    assertNothing(await retry(pml, WRITE, { requestState, inputResponses }), name);
  }
  assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"]);
  await endWell(ws, pml);
});

/** Other calls with the state of the approved one. */
const MOVED: Readonly<Record<string, ToolCall>> = {
  "another file": writing("other.txt", "made"),
  "another content": writing("made.txt", "attacked"),
  "a text longer by a blank": writing("made.txt", "made "),
  "another tool": { name: "filesystem__create_directory", arguments: { path: "made.txt" } },
  "the call in a batch": batchOf([WRITE]),
  "the call in a batch with another": batchOf([WRITE, writing("other.txt", "made")]),
  "another argument beside": {
    name: WRITE.name,
    arguments: { ...WRITE.arguments, mode: 0o777 },
  },
};

Deno.test("a state with another call asks about that call, and is used up (PM11, PM12)", async () => {
  await using scene = await scenery();
  const { ws, pml } = scene;
  for (const [name, moved] of Object.entries(MOVED)) {
    const question = await questionOf(pml, WRITE);
    const more = { requestState: question.state, inputResponses: YES };
    const outcome = await outcomeOf(pml, moved, more);
    const text = JSON.stringify(outcome);
    // A batch with only this call is the same call.
    if (name === "the call in a batch") continue;
    if (outcome.kind === "asked") assert.notEqual(outcome.asked.text, question.text, name);
    else assert.equal(codeOf(outcome.message), "BAD_ARGUMENTS", text);
    assert.deepEqual((await readdir(ws.path)).filter((file) => file === "other.txt"), [], name);
  }
  await endWell(ws, pml);
});

Deno.test("PML asks about a changed call in its new form (PM12)", async () => {
  await using scene = await scenery();
  const { ws, pml } = scene;
  const question = await questionOf(pml, WRITE);
  const more = { requestState: question.state, inputResponses: YES };
  const outcome = await outcomeOf(pml, writing("other.txt", "attacked"), more);
  assert.equal(outcome.kind, "asked");
  if (outcome.kind === "asked") assert.match(outcome.asked.text, /"other\.txt"[^]*"attacked"/);
  // The state is used up, though its call never ran.
  assertNothing(await question.answer(picked("Yes")), "a moved state");
  assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"]);
  await endWell(ws, pml);
});

Deno.test("a state approves one call, however often it is sent (PM11)", async () => {
  await using scene = await scenery();
  const { ws, pml } = scene;
  const question = await questionOf(pml, WRITE);
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => question.answer(picked("Yes"))),
  );
  const passed = answers.filter((answer) => codeOf(answer) === undefined && !asksAgain(answer));
  assert.equal(passed.length, 1);
  assertNothing(await question.answer(picked("Always")), "later");
  assert.equal((await eventsOf(ws)).filter((event) => event === "approved").length, 1);
  await endWell(ws, pml);
});

Deno.test("a state expires (PM11)", async () => {
  await using scene = await makeScene({ ...asking(), limits: { approval_ms: 1000 } });
  const { ws, pml } = scene;
  const question = await questionOf(pml, WRITE);
  await new Promise((resolve) => setTimeout(resolve, 1_050));
  assertNothing(await question.answer(picked("Yes")), "expired");
  assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"]);
  await endWell(ws, pml);
});

Deno.test("a state of another process is invalid (PM11)", async () => {
  await using scene = await scenery();
  const { ws, pml } = scene;
  await using other = new RawStdio(ws, asking());
  await other.open();
  const question = await questionOf(pml, WRITE);
  const more = { requestState: question.state, inputResponses: YES };
  assertNothing(await retry(other, WRITE, more), "there");
  assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"]);
  assert.equal(codeOf(await question.answer(picked("Yes"))), undefined);
  assert.equal((await other.close()).code, 0);
  await endWell(ws, pml);
});

Deno.test("a call of the older protocol cannot contain its own answer (PM11)", async () => {
  await using scene = await makeScene({ ...asking(), era: "2025-11-25" });
  const { ws, pml } = scene;
  for (const requestState of ["x", "", undefined]) {
    const more = { requestState, inputResponses: YES, _meta: { requestState } };
    const outcome = await outcomeOf(pml, WRITE, more);
    assert.equal(outcome.kind, "asked");
    assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"]);
  }
});

for (const era of ERAS) {
  Deno.test(`no member of a call counts as an approval, on ${era} (PM10)`, async () => {
    await using scene = await makeScene({ ...asking(), era, capabilities: {} });
    const { ws, pml } = scene;
    const said = { answer: "Yes", approved: true, verdict: { kind: "allow" }, via: "cli" };
    for (const args of [said, { ...WRITE.arguments, ...said }, { _meta: said }]) {
      const answer = await pml.callTool(WRITE.name, args);
      assert.equal(codeOf(answer), "BAD_ARGUMENTS");
    }
    const more = { ...said, _meta: said, task: said };
    const answer = await pml.request("tools/call", { ...WRITE, ...more });
    assert.ok(codeOf(answer) !== undefined, JSON.stringify(answer));
    assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"]);
    await endWell(ws, pml);
  });
}

function asking() {
  return { era: "2026-07-28", pml: READS, capabilities: CAN_ASK } as const;
}

async function scenery(): Promise<Scene> {
  return await makeScene(asking());
}

async function retry(
  pml: RawStdio,
  call: ToolCall,
  more: Record<string, unknown>,
): Promise<Message> {
  return await pml.request("tools/call", { ...call, ...more });
}

function assertNothing(answer: Message, what: string): void {
  const refused = codeOf(answer) !== undefined || asksAgain(answer);
  assert.ok(refused, `${what}: ${JSON.stringify(answer)}`);
}

function asksAgain({ result }: Message): boolean {
  return String(result?.resultType) === "input_required";
}

function writing(path: string, content: string): ToolCall {
  return { name: "filesystem__write_file", arguments: { path, content } };
}

function batchOf(calls: readonly ToolCall[]): ToolCall {
  const items = calls.map(({ name, arguments: args }) => ({ tool: name, arguments: args }));
  return { name: "batch", arguments: { calls: items } };
}
