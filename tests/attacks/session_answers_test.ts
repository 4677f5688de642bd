/**
 * Answers "For this session": they belong to one connection of one living process.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { NO_WARNINGS } from "../../src/io/private_files.ts";
import { sessionAnswersIn } from "../../src/policy/session_files.ts";
import type { ElicitResult } from "../kit/client.ts";
import { ERAS } from "../kit/json_rpc.ts";
import { servePml } from "../kit/pml_serve.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "../kit/run.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell, journalOf } from "./oracles.ts";
import { answerOf, picked, questionOf, read, type ToolCall } from "./questions.ts";
import { makeAttackWorkspace, makeScene, SLOW } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
const READS = { version: 1, permissions: { allow: ["filesystem:read_file"] } } as const;
const SESSION = "For this session";

function making(path: string): ToolCall {
  return { name: "filesystem__create_directory", arguments: { path } };
}

async function stored(ws: Workspace) {
  return await sessionAnswersIn(ws.home, NO_WARNINGS);
}

/** Answers the question about a call for the session. */
async function allow(pml: RawStdio, path: string): Promise<void> {
  const question = await questionOf(pml, making(path));
  assert.ok(question.replies.includes(SESSION), question.replies.join());
  await read();
  assert.equal(codeOf(await question.answer(picked(SESSION))), undefined);
}

/** Makes a call that must be asked about, and refuses it. */
async function refuse(pml: RawStdio, path: string): Promise<void> {
  const question = await questionOf(pml, making(path));
  await read();
  assert.equal(codeOf(await question.answerOnce(picked("No"))), "APPROVAL_DECLINED");
}

for (const era of ERAS) {
  Deno.test(`an answer for a session is for one process, and none survives a kill, on ${era}`, async () => {
    await using scene = await makeScene({
      ...{ era, pml: READS, capabilities: CAN_ASK, ownProcess: true },
    });
    const { ws, pml } = scene;
    await allow(pml, "one");
    assert.equal(codeOf(await answerOf(pml, making("two"))), undefined);
    // The same client, also by its name.
    await using other = new RawStdio(ws, { era, capabilities: CAN_ASK, ownProcess: true });
    await other.open();
    await refuse(other, "three");
    const approvals = (await journalOf(ws)).filter(({ kind, event }) =>
      kind === "event" && event === "approved"
    );
    assert.deepEqual(approvals.map(({ about }) => Object(about).answer), ["session"]);
    assert.equal((await stored(ws)).length, 1);
    await pml.kill();
    assert.equal((await readdir(join(ws.home, "sessions"))).length, 1, "nothing could remove it");
    assert.deepEqual(await stored(ws), []);
    await using again = new RawStdio(ws, { era, capabilities: CAN_ASK });
    await again.open();
    await refuse(again, "four");
    assert.deepEqual((await readdir(ws.path)).filter((name) => !name.includes(".")), [
      "one",
      "two",
    ]);
  });

  Deno.test(`an answer for a session that came after 300 ms counts for each later call, on ${era}`, async () => {
    const pml = { version: 1, private_mcps: { slow: { type: "deno", path: "slow.js" } } } as const;
    await using scene = await makeScene({
      ...{ era, pml, files: { ...SLOW.files, "now.txt": "now" }, capabilities: CAN_ASK },
    });
    const call = { name: "slow__wait", arguments: { path: "now.txt" } };
    const question = await questionOf(scene.pml, call);
    await new Promise((resolve) => setTimeout(resolve, 400));
    assert.equal(codeOf(await question.answer(picked(SESSION))), undefined);
    for (let count = 0; count < 2; count++) {
      assert.equal(codeOf(await answerOf(scene.pml, call)), undefined);
    }
    const lines = await journalOf(scene.ws);
    assert.deepEqual(lines.flatMap(({ answer }) => answer ?? []), ["Session"]);
    const approved = lines.filter(({ event }) => event === "approved");
    assert.deepEqual(approved.map(({ about }) => Object(about).answer), ["session", "session"]);
    const { stdout } = await runPml(scene.ws, ["rules"]);
    assert.match(stdout, /slow:wait.*session|session.*slow:wait/is);
    // A program answered.
    const other = { name: "filesystem__create_directory", arguments: { path: "one" } };
    const fast = await questionOf(scene.pml, other);
    assert.equal(codeOf(await fast.answerOnce(picked(SESSION))), undefined);
    await refuse(scene.pml, "two");
  });

  Deno.test(`an answer for a session ends with the connection, on ${era}`, async () => {
    await using scene = await makeScene({ era, pml: READS, capabilities: CAN_ASK });
    const { ws, pml } = scene;
    await allow(pml, "one");
    assert.equal((await stored(ws)).length, 1);
    await endWell(ws, pml);
    assert.deepEqual(await readdir(join(ws.home, "sessions")), []);
  });

  Deno.test(`an answer of one window is not for another, nor for the window after a kill, on ${era}`, async () => {
    await using ws = await makeAttackWorkspace({ pml: READS });
    const served = await servePml(ws, [], { ownProcess: true });
    const options = { era, capabilities: CAN_ASK };
    await using one = new RawStdio(ws, options);
    await using other = new RawStdio(ws, options);
    await one.open();
    await other.open();
    await allow(one, "one");
    assert.equal(codeOf(await answerOf(one, making("two"))), undefined);
    await refuse(other, "three");
    assert.doesNotMatch(one.stderr, /Serving/);
    served.kill("SIGKILL");
    await served.ended;
    await refuse(one, "four");
    assert.match(one.stderr, /Serving on stdio/);
    assert.deepEqual(await stored(ws), []);
  });
}

Deno.test("an answer for a session over HTTP is for one session id, which cannot be used again", async () => {
  await using ws = await makeAttackWorkspace({ pml: READS });
  await using served = await servePml(ws);
  const question: (readonly string[])[] = [];
  const elicit = async ({ requestedSchema }: { readonly requestedSchema?: unknown }) => {
    const { answer } = Object(requestedSchema).properties;
    question.push(answer.enum);
    await read();
    const content = { answer: answer.enum.includes(SESSION) ? SESSION : "No" };
    return { action: "accept", content } satisfies ElicitResult;
  };
  await using one = await served.connect({ elicit });
  const made = async (client: typeof one.client, path: string) =>
    (await client.callTool({ ...making(path) })).isError !== true;
  assert.ok(await made(one.client, "one") && await made(one.client, "two"));
  assert.equal(question.length, 1);
  await using other = await served.connect({ elicit });
  assert.ok(await made(other.client, "three"));
  assert.equal(question.length, 2, "another session of the same client is asked");
  const id = one.transport.sessionId ?? "";
  await one.transport.terminateSession();
  assert.equal((await stored(ws)).length, 1);
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: making("four") };
  const headers = { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
  const again = await served.fetch({ method: "POST", headers, body: JSON.stringify(message) });
  assert.equal(again.status, 404);
  await again.body?.cancel();
  await using stateless = await served.connect({ era: "2026-07-28", elicit });
  assert.equal(await made(stateless.client, "five"), false);
  assert.ok(!question.at(-1)?.includes(SESSION), "a request without a session offers none");
});

Deno.test("a copied file of an answer for a session allows nothing in another process", async () => {
  await using scene = await makeScene({ pml: READS, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  await allow(pml, "one");
  const [{ id, ...answer } = assert.fail()] = await stored(ws);
  await using other = new RawStdio(ws, { capabilities: CAN_ASK });
  await other.open();
  // The files as they are, and under another name with another process.
  const copy = join(ws.home, "sessions", `${"0".repeat(64)}.json`);
  await writeFile(copy, JSON.stringify({ ...answer, pid: Deno.pid }));
  await refuse(other, "two");
  assert.notEqual(id, "");
  await other.close();
  assert.equal(codeOf(await answerOf(pml, making("three"))), undefined);
  await endWell(ws, pml);
});

Deno.test("pml approve answers for the session that asked, and for no other", async () => {
  await using scene = await makeScene({ pml: READS, capabilities: {} });
  const { ws, pml } = scene;
  await using other = new RawStdio(ws, {});
  await other.open();
  const approve = async () => {
    const typed = [["[s] for this session", "s"]] as const;
    const ran = await runPmlOnTerminal(ws, ["approve"], { typed });
    assert.equal(ran.code, 0, ran.stdout);
  };
  assert.equal(codeOf(await answerOf(pml, making("one"))), "APPROVAL_REQUIRED");
  await approve();
  // The approval is for the call, too, and so for whoever makes it first.
  assert.equal(codeOf(await answerOf(other, making("one"))), undefined);
  assert.equal(codeOf(await answerOf(other, making("two"))), "APPROVAL_REQUIRED");
  assert.deepEqual(await stored(ws), []);
  assert.equal(codeOf(await answerOf(pml, making("three"))), "APPROVAL_REQUIRED");
  const typed = [
    [/"two"[^]*\[s\] for this session/, "n"],
    [/"three"[^]*\[s\] for this session/, "s"],
  ] as const;
  await runPmlOnTerminal(ws, ["approve"], { typed });
  assert.equal(codeOf(await answerOf(pml, making("three"))), undefined);
  assert.equal(codeOf(await answerOf(pml, making("four"))), undefined);
  assert.equal((await stored(ws)).length, 1);
  const { sessions: [{ id, rule }] } = JSON.parse((await runPml(ws, ["rules", "--json"])).stdout);
  const shown = (await runPml(ws, ["rules"])).stdout;
  assert.ok(shown.includes(rule) && shown.includes(`pml rules end ${id.slice(0, 12)}`), shown);
  assert.equal((await runPml(ws, ["rules", "end", "0".repeat(12)])).code, 2);
  assert.equal((await runPml(ws, ["rules", "end", id.slice(0, 12)])).code, 0);
  assert.equal(codeOf(await answerOf(pml, making("five"))), "APPROVAL_REQUIRED");
  await other.close();
  await pml.close();
  assert.deepEqual(await stored(ws), []);
});
