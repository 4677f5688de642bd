import assert from "node:assert/strict";
import { readdir, readFile, rm } from "node:fs/promises";
import { connect } from "../kit/client.ts";
import { ERAS, type Message } from "../kit/json_rpc.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPmlOnTerminal } from "../kit/run.ts";
import { waitUntil } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import {
  assertAftermath,
  batchedCalls,
  codeOf,
  endWell,
  eventsOf,
  journalOf,
  ofKind,
  textOf,
} from "./oracles.ts";
import { answerOf, picked, questionOf, read, type ToolCall } from "./questions.ts";
import { makeAttackWorkspace, makeScene } from "./stage.ts";

/** Reading is allowed, for the check that the gateway serves; writing asks. */
const READS = { version: 1, permissions: { allow: ["filesystem:read_file"] } } as const;
const CAN_ASK = { elicitation: { form: {} } } as const;
const WRITE = writing("made.txt", "made");

/** A reply of a client, either at once (as a program does) or after a pause, and the outcome. */
type Reply = readonly [name: string, result: unknown, code: string, pace?: "at once"];

const REFUSALS: readonly Reply[] = [
  ["declines", { action: "decline" }, "APPROVAL_DECLINED"],
  ["cancels", { action: "cancel" }, "APPROVAL_DECLINED"],
  ["picks No", picked("No"), "APPROVAL_DECLINED"],
  ["declines, picking Yes", { action: "decline", content: { answer: "Yes" } }, "APPROVAL_DECLINED"],
  ["cancels, picking Yes", { action: "cancel", content: { answer: "Yes" } }, "APPROVAL_DECLINED"],
  ["declines by itself", { action: "decline" }, "APPROVAL_REQUIRED", "at once"],
  ["cancels by itself", { action: "cancel" }, "APPROVAL_REQUIRED", "at once"],
  ["picks No by itself", picked("No"), "APPROVAL_REQUIRED", "at once"],
];

/** Replies without a decision of the user: the question offered none of them. */
const UNOFFERED_REPLIES: readonly object[] = [
  { action: "accept", content: {} },
  { action: "accept" },
  { action: "accept", content: { answer: "yes" } },
  { action: "accept", content: { answer: "Yes " } },
  { action: "accept", content: { answer: ["Yes"] } },
  { action: "accept", content: { answer: true } },
  { action: "accept", content: { answer: "Never" } },
  { action: "accept", content: { Answer: "Yes" } },
  { action: "bogus", content: { answer: "No" } },
  {},
];

/** Replies that are not valid answers to the question. The call does not run after any of them. */
const INVALID_REPLIES: readonly unknown[] = [
  null,
  {},
  [],
  "Yes",
  { action: "Accept", content: { answer: "Yes" } },
  { action: ["accept"], content: { answer: "Yes" } },
  { content: { answer: "Yes" } },
  { action: "accept", content: "Yes" },
  { action: "accept", content: [{ answer: "Yes" }] },
  JSON.parse('{"action":"accept","content":{"__proto__":{"answer":"Yes"}}}'),
];

for (const era of ERAS) {
  Deno.test(`a client that cannot ask gets the command to run instead, on ${era} (PM10)`, async () => {
    for (const capabilities of [{}, { elicitation: { url: {} } }, { sampling: {} }]) {
      await using scene = await makeScene({ era, pml: READS, capabilities });
      const { ws, pml } = scene;
      const answer = await answerOf(pml, WRITE);
      assert.equal(codeOf(answer), "APPROVAL_REQUIRED");
      assert.match(textOf(answer), /Nothing was run\. .*`pml approve`.* this call again/);
      assert.equal(await madeIn(ws), undefined);
      await endWell(ws, pml, { calls: 2 });
    }
  });

  Deno.test(`a call runs only if the user answers yes, on ${era} (PM10)`, async () => {
    await using scene = await makeScene({ era, pml: READS, capabilities: CAN_ASK });
    const { ws, pml } = scene;
    const pending: Promise<Message>[] = [];
    for (const [at, [, result, , pace]] of REFUSALS.entries()) {
      const question = await questionOf(pml, writing(`${at}.txt`, "made"));
      const reading = pace === undefined ? read() : Promise.resolve();
      pending.push(reading.then(() => question.answer(result)));
    }
    for (const [at, [name, , code]] of REFUSALS.entries()) {
      const answer = await pending[at] as Message; // one for each row
      assert.equal(codeOf(answer), code, `${name}: ${JSON.stringify(answer)}`);
    }
    assert.deepEqual(await readdir(ws.path), [".pml.json", "good.txt"]);
    const events = await eventsOf(ws);
    assert.ok(!events.includes("approved") && !events.includes("always"), events.join());
    await endWell(ws, pml);
  });

  Deno.test(`a reply that the question did not offer is no decision, on ${era} (PM10)`, async () => {
    for (const reply of UNOFFERED_REPLIES) {
      let questions = 0;
      await using scene = await makeScene({
        era,
        pml: READS,
        capabilities: CAN_ASK,
        answer: async () => {
          questions++;
          await read();
          return reply;
        },
      });
      const { ws, pml } = scene;
      const answer = await pml.callTool(WRITE.name, WRITE.arguments);
      assert.equal(codeOf(answer), "APPROVAL_REQUIRED", JSON.stringify([reply, answer]));
      assert.equal(questions, 2, JSON.stringify(reply));
      assert.deepEqual(new Set(await eventsOf(ws)), new Set(["asked"]));
      assert.equal(await madeIn(ws), undefined);
      await endWell(ws, pml);
    }
  });

  Deno.test(`an invalid reply runs nothing, on ${era} (PM10)`, async () => {
    // PML ignores replies that are not even JSON-RPC responses: then the question times out.
    const limits = { approval_ms: 1000 };
    await using scene = await makeScene({ era, pml: READS, capabilities: CAN_ASK, limits });
    const { ws, pml } = scene;
    for (const result of INVALID_REPLIES) {
      const question = await questionOf(pml, WRITE);
      const answer = await question.answer(result);
      const json = JSON.stringify(answer);
      assert.ok(codeOf(answer) !== undefined || json.includes("input_required"), json);
      assert.equal(await madeIn(ws), undefined, JSON.stringify(result));
    }
    await endWell(ws, pml);
  });

  Deno.test(`Yes approves one call, once, on ${era} (PM10)`, async () => {
    await using scene = await makeScene({
      // The test kills the process of PML.
      ownProcess: true,
      era,
      pml: READS,
      capabilities: CAN_ASK,
    });
    const { ws, pml } = scene;
    const question = await questionOf(pml, WRITE);
    assert.deepEqual(question.replies, ["Yes", "Always", "No"]);
    const answer = await question.answer(picked("Yes"));
    assert.equal(answer.result?.isError, undefined, JSON.stringify(answer));
    assert.equal(await madeIn(ws), "made");
    await rm(ws.file("made.txt"));
    await questionOf(pml, WRITE);
    assert.equal(await madeIn(ws), undefined);
    assert.deepEqual(await readFile(ws.file(".pml.json"), "utf8"), JSON.stringify(READS, null, 2));
    assert.deepEqual(await eventsOf(ws), ["asked", "approved", "asked"]);
    await pml.kill(); // a question is still open in the older protocol
  });
}

Deno.test("Always applies from the next call on, and is in the file (PM13)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", pml: READS, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const question = await questionOf(pml, WRITE);
  await read();
  await question.answer(picked("Always"));
  assert.equal(await madeIn(ws), "made");
  await answerOf(pml, writing("made.txt", "made again"));
  assert.equal(await madeIn(ws), "made again");
  const { permissions } = JSON.parse(await readFile(ws.file(".pml.json"), "utf8"));
  assert.deepEqual(permissions.allow.sort(), ["filesystem:read_file", "filesystem:write_file"]);
  const other = await questionOf(pml, call("create_directory", { path: "d" }));
  await read();
  await other.answer({ action: "decline" });
  await endWell(ws, pml);
  // Another process reads the rule, and still trusts the file.
  await using again = new RawStdio(ws, { era: "2026-07-28" });
  await again.open();
  await answerOf(again, writing("made.txt", "made by another"));
  assert.equal(await madeIn(ws), "made by another");
});

for (const era of ERAS) {
  Deno.test(`an answer Always that the question did not offer has no effect, on ${era}`, async () => {
    const pml = { version: 1, permissions: { allow: ["filesystem:read_file"] } };
    await using scene = await makeScene({ era, pml, trusted: false, capabilities: CAN_ASK });
    const { ws } = scene;
    const question = await questionOf(scene.pml, WRITE);
    assert.deepEqual(question.replies, ["Yes", "No"]);
    const answer = question.answer(picked("Always"));
    // PML asks again: in the older protocol while the call still waits.
    answer.catch(() => {}); // the test does not answer the second question
    const again = era === "2025-11-25" ? questionIn(scene.pml, 1) : answer;
    const message = await Promise.race([answer, again]);
    assert.match(JSON.stringify(message), /elicitation\/create/);
    assert.equal(await madeIn(ws), undefined);
    assert.equal(await readFile(ws.file(".pml.json"), "utf8"), JSON.stringify(pml, null, 2));
    assert.ok(!(await eventsOf(ws)).includes("always"));
  });

  Deno.test(`the SDK's client answers Yes, Always and No, on ${era}`, async () => {
    await using ws = await makeAttackWorkspace({ pml: READS });
    const answers = ["Yes", "No", "Always"];
    const questions: string[] = [];
    await using connection = await connect(ws, {
      era,
      elicit: async ({ message }) => {
        questions.push(message);
        await read();
        return { action: "accept", content: { answer: answers.shift() ?? "No" } };
      },
    });
    const { client, raw } = connection;
    const made: unknown[] = [];
    for (const content of ["one", "two", "three", "four"]) {
      const result = await client.callTool(writing("made.txt", content));
      made.push(result.isError ?? false, await madeIn(ws));
    }
    assert.deepEqual(made, [false, "one", true, "one", false, "three", false, "four"]);
    assert.equal(questions.length, 3);
    await client.close();
    await raw.ended;
    await assertAftermath(ws, raw);
  });
}

for (const era of ERAS) {
  Deno.test(`an SDK that fills in the form by itself approves nothing, on ${era}`, async () => {
    await using ws = await makeAttackWorkspace({ pml: READS });
    const forms: string[] = [];
    await using connection = await connect(ws, {
      era,
      capabilities: { elicitation: { form: { applyDefaults: true } } },
      elicit: async ({ requestedSchema }) => {
        forms.push(JSON.stringify(requestedSchema));
        await read();
        return { action: "accept", content: {} };
      },
    });
    const { client, raw } = connection;
    const { isError } = await client.callTool(call("create_directory", { path: "made" }));
    assert.equal(isError, true);
    assert.equal(forms.length, 2);
    assert.doesNotMatch(forms.join(), /"default"/);
    assert.ok(!(await readdir(ws.path)).includes("made"));
    await client.close();
    await raw.ended;
    await assertAftermath(ws, raw);
  });
}

Deno.test("a call whose question is never answered times out, and nothing runs (PM10)", async () => {
  const limits = { approval_ms: 1000 };
  await using scene = await makeScene({ pml: READS, capabilities: CAN_ASK, limits });
  const { ws, pml } = scene;
  const since = performance.now();
  const answer = await pml.request("tools/call", { ...WRITE });
  assert.ok(performance.now() - since < 10_000);
  assert.equal(codeOf(answer), "APPROVAL_REQUIRED", JSON.stringify(answer));
  assert.match(textOf(answer), /`pml approve`/);
  assert.equal(await madeIn(ws), undefined);
  // The late answer matches no question.
  const { id } = pml.messages.find(({ method }) => method === "elicitation/create") ?? {};
  await pml.sendJson({ jsonrpc: "2.0", id, result: picked("Yes") });
  await endWell(ws, pml, { calls: 2 });
  assert.equal(await madeIn(ws), undefined);
});

Deno.test("if the client fails to ask, PML refers the user to the terminal (PM10)", async () => {
  await using scene = await makeScene({ pml: READS, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const { answer } = pml.begin("tools/call", { ...WRITE });
  await questionIn(pml, 0);
  const { id } = pml.messages.at(-1) ?? {};
  await pml.sendJson({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
  assert.equal(codeOf(await answer), "APPROVAL_REQUIRED");
  await endWell(ws, pml, { calls: 2 });
  assert.equal(await madeIn(ws), undefined);
});

Deno.test("answers to unknown ids and repeated answers have no effect (PM10)", async () => {
  await using scene = await makeScene({ pml: READS, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const { answer } = pml.begin("tools/call", { ...WRITE });
  const { id } = await questionIn(pml, 0);
  for (const other of [Number(id) + 1, String(id), `${id} `, null, -1]) {
    await pml.sendJson({ jsonrpc: "2.0", id: other, result: picked("Yes") });
  }
  await pml.request("tools/list");
  assert.equal(await madeIn(ws), undefined);
  const lines = [picked("Yes"), picked("Yes"), picked("Always")].map((result) =>
    `${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`
  );
  await pml.sendText(lines.join(""));
  assert.equal((await answer).result?.isError, undefined);
  assert.equal(await madeIn(ws), "made");
  assert.deepEqual(await eventsOf(ws), ["asked", "approved"]);
  await endWell(ws, pml);
  // One result is of the write, one of the read with which `endWell()` checks the gateway.
  assert.equal(ofKind(await journalOf(ws), "end").filter(isResult).length, 2);
});

Deno.test("two simultaneous questions are not mixed up (PM10)", async () => {
  await using scene = await makeScene({ pml: READS, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const first = pml.begin("tools/call", { ...writing("one.txt", "1") });
  const { id: one } = await questionIn(pml, 0);
  const second = pml.begin("tools/call", { ...writing("two.txt", "2") });
  const { id: two } = await questionIn(pml, 1);
  await read();
  await pml.sendJson({ jsonrpc: "2.0", id: two, result: picked("Yes") });
  await pml.sendJson({ jsonrpc: "2.0", id: one, result: picked("No") });
  assert.equal(codeOf(await first.answer), "APPROVAL_DECLINED");
  assert.equal((await second.answer).result?.isError, undefined);
  assert.equal(await readFile(ws.file("two.txt"), "utf8"), "2");
  assert.equal(await readFile(ws.file("one.txt"), "utf8").catch(() => ""), "");
  await endWell(ws, pml);
});

Deno.test("a call approved by `pml approve` runs once, with exactly these arguments", async () => {
  await using scene = await makeScene({ era: "2025-11-25", pml: READS, capabilities: {} });
  const { ws, pml } = scene;
  assert.equal(codeOf(await answerOf(pml, WRITE)), "APPROVAL_REQUIRED");
  const approval = await runPmlOnTerminal(ws, ["approve"], {
    typed: [["Approve exactly this call?", "y"]],
  });
  assert.equal(approval.code, 0, approval.stdout);
  assert.match(approval.stdout, /"write_file"[^]*"path": "made.txt"/);
  assert.equal(codeOf(await answerOf(pml, writing("made.txt", "other"))), "APPROVAL_REQUIRED");
  assert.equal(codeOf(await answerOf(pml, writing("other.txt", "made"))), "APPROVAL_REQUIRED");
  assert.equal(await madeIn(ws), undefined);
  assert.equal(codeOf(await answerOf(pml, WRITE)), undefined);
  assert.equal(await madeIn(ws), "made");
  await rm(ws.file("made.txt"));
  assert.equal(codeOf(await answerOf(pml, WRITE)), "APPROVAL_REQUIRED");
  assert.equal(await madeIn(ws), undefined);
  await endWell(ws, pml);
});

Deno.test("a call does not run if the user answers no to `pml approve`", async () => {
  await using scene = await makeScene({ pml: READS, capabilities: {} });
  const { ws, pml } = scene;
  await answerOf(pml, WRITE);
  await runPmlOnTerminal(ws, ["approve"], { typed: [["Approve exactly this call?", "n"]] });
  assert.equal(codeOf(await answerOf(pml, WRITE)), "APPROVAL_REQUIRED");
  assert.equal(await madeIn(ws), undefined);
  await endWell(ws, pml);
});

Deno.test("a batch asks once, and none of its calls run after the answer No", async () => {
  const permissions = { allow: ["filesystem:read_file"], deny: ["filesystem:move_file"] };
  const file = { version: 1, permissions };
  await using scene = await makeScene({ era: "2026-07-28", pml: file, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const batch = {
    name: "batch",
    arguments: {
      calls: [
        { tool: "filesystem:move_file", arguments: { source: "good.txt", destination: "b" } },
        { tool: "filesystem:write_file", arguments: { path: "one.txt", content: "1" } },
        { tool: "filesystem:write_file", arguments: { path: "two.txt", content: "2" } },
        { tool: "filesystem:read_file", arguments: { path: "good.txt" } },
      ],
    },
  };
  const refused = await questionOf(pml, batch);
  assert.match(refused.text, /may these 2 calls run\?[^]*one\.txt[^]*two\.txt/);
  assert.doesNotMatch(refused.text, /move_file/);
  assert.deepEqual(refused.replies, ["Yes", "No"]);
  await read();
  assert.equal(codeOf(await refused.answer(picked("No"))), "APPROVAL_DECLINED");
  assert.equal(ofKind(await journalOf(ws), "end").filter(isResult).length, 0);
  const question = await questionOf(pml, batch);
  const items = batchedCalls(await question.answer(picked("Yes")));
  const codes = items.map(({ error }) => error?.code);
  assert.deepEqual(codes, ["PERMISSION_DENIED", undefined, undefined, undefined]);
  assert.equal(await readFile(ws.file("one.txt"), "utf8"), "1");
  assert.equal(await readFile(ws.file("good.txt"), "utf8"), "good\n");
  await endWell(ws, pml);
});

function call(tool: string, args: Record<string, unknown>): ToolCall {
  return { name: `filesystem__${tool}`, arguments: args };
}

function writing(path: string, content: string) {
  return { name: "filesystem__write_file", arguments: { path, content } };
}

async function madeIn(ws: Workspace): Promise<string | undefined> {
  return await readFile(ws.file("made.txt"), "utf8").catch(() => undefined);
}

async function questionIn(pml: RawStdio, index: number): Promise<Message> {
  const questions = () => pml.messages.filter(({ method }) => method === "elicitation/create");
  assert.ok(await waitUntil(() => questions().length > index), "no question came");
  return questions()[index] as Message; // the condition above found it
}

function isResult({ outcome }: { readonly outcome?: string }): boolean {
  return outcome === "result";
}
