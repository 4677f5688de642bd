/**
 * Keys in arguments: on the disk, in questions, and in calls that a rule allows.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell } from "./oracles.ts";
import { answerOf, picked, questionOf, read, type ToolCall } from "./questions.ts";
import { makeScene } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
const READS = { version: 1, permissions: { allow: ["filesystem:read_file"] } } as const;
const KEY = `ghp_${"a1B2c3D4".repeat(4)}`;

function writing(path: string, content: string): ToolCall {
  return { name: "filesystem__write_file", arguments: { path, content } };
}

/** Returns the texts of all approvals in the PML home. */
async function approvalsIn({ home }: Workspace): Promise<readonly string[]> {
  const texts = ["pending", "approved"].map(async (state) => {
    const folder = join(home, state);
    const names = await readdir(folder).catch(() => []);
    return await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  });
  return (await Promise.all(texts)).flat();
}

/** Makes all waiting approvals older than their limit. */
async function age({ home }: Workspace): Promise<void> {
  const folder = join(home, "pending");
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const kept = JSON.parse(await readFile(path, "utf8"));
    await writeFile(path, JSON.stringify({ ...kept, asked: 1, expires: 2 }));
    await utimes(path, 1, 1);
  }
}

Deno.test("expired approvals are removed by each command, start and end of PML (GX19)", async () => {
  await using scene = await makeScene({ pml: READS, capabilities: {} });
  const { ws, pml } = scene;
  const leave = async () => {
    assert.equal(codeOf(await answerOf(pml, writing("a.txt", KEY))), "APPROVAL_REQUIRED");
    assert.match((await approvalsIn(ws)).join(), /ghp_/);
    await age(ws);
  };
  await leave();
  assert.equal((await runPml(ws, ["list"])).code, 0);
  assert.deepEqual(await approvalsIn(ws), [], "a command");
  await leave();
  {
    await using other = new RawStdio(ws);
    await other.open();
    assert.deepEqual(await approvalsIn(ws), [], "a start");
  }
  await leave();
  await endWell(ws, pml);
  assert.deepEqual(await approvalsIn(ws), [], "the end");
});

Deno.test("a question names the argument that looks like a key (GX19)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", pml: READS, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const { text, answer } = await questionOf(pml, writing("a.txt", `token: ${KEY}`));
  assert.match(text, /"content": "token: ghp_.*\n +\^ .* a key\n/);
  assert.equal(text.match(/looks like a key/g)?.length, 1);
  await answer(picked("Yes"));
  await endWell(ws, pml);
});

Deno.test("ask_for_keys asks for keys that a rule allows, without Always (GX19)", async () => {
  const allowed = { version: 1, permissions: { allow: ["filesystem:*"] } };
  await using scene = await makeScene({ era: "2025-11-25", pml: allowed, capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const call = (content: string) => writing("a.txt", content);
  assert.equal(codeOf(await answerOf(pml, call(KEY))), undefined, "it is off by default");
  await pml.close();
  await writeFile(join(ws.home, "config.yaml"), "ask_for_keys: true\n");
  await using strict = new RawStdio(ws, { era: "2025-11-25", capabilities: CAN_ASK });
  await strict.open();
  for (let turn = 0; turn < 2; turn++) {
    // PML does not ask about a call without a key.
    assert.equal(codeOf(await answerOf(strict, call("plain"))), undefined);
    const question = await questionOf(strict, call(KEY));
    assert.deepEqual(question.replies, ["Yes", "No"]);
    assert.equal(codeOf(await question.answer(picked("Yes"))), undefined);
  }
  const batch = { calls: [{ tool: "filesystem:write_file", arguments: call(KEY).arguments }] };
  const { answer, text } = await questionOf(strict, { name: "batch", arguments: batch });
  assert.match(text, /\^ .*looks like a key/);
  await read();
  await answer(picked("No"));
  await endWell(ws, strict);
});
