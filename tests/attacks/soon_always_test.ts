/**
 * Answers that a client sends before a user can have read the question.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ERAS } from "../kit/json_rpc.ts";
import { pmlCommand, repoFile } from "../kit/pml_command.ts";
import { eventsOf } from "./oracles.ts";
import { answerOf, picked, questionOf, type ToolCall } from "./questions.ts";
import { makeScene } from "./stage.ts";

const RULES = { version: 1, permissions: { allow: ["filesystem:read_file"] } } as const;

function writing(content: string): ToolCall {
  return { name: "filesystem__write_file", arguments: { path: "made.txt", content } };
}

for (const era of ERAS) {
  Deno.test(`Always within 300 ms runs the call once and writes no rule, on ${era} (GX13)`, async () => {
    const [deno, run = "", ...args] = pmlCommand();
    const preload = `--preload=${repoFile("tests/kit/jumping_clock.ts")}`;
    await using scene = await makeScene({
      era,
      pml: RULES,
      capabilities: { elicitation: { form: {} } },
      command: [deno, run, preload, ...args, "stdio"],
    });
    const { ws, pml } = scene;
    // PML's clock stops, so the test decides the time between question and answer.
    let now = Date.now();
    const passMs = async (ms: number) => {
      now += ms;
      await writeFile(join(ws.root, "next"), `=${now}`);
      await rename(join(ws.root, "next"), join(ws.home, "clock"));
    };
    const before = await readFile(ws.file(".pml.json"), "utf8");
    await passMs(0);
    for (const ms of [0, 299]) {
      const question = await questionOf(pml, writing(`${ms}`));
      assert.deepEqual(question.replies, ["Yes", "Always", "No"], "it is asked each time");
      await passMs(ms);
      const { result } = await question.answerOnce(picked("Always"));
      assert.equal(result?.isError, undefined, JSON.stringify(result));
      assert.equal(await readFile(ws.file("made.txt"), "utf8"), `${ms}`);
      assert.equal(await readFile(ws.file(".pml.json"), "utf8"), before);
      assert.ok(!(await eventsOf(ws)).includes("always"));
    }
    const approval = await questionOf(pml, writing("read"));
    await passMs(300);
    await approval.answerOnce(picked("Always"));
    await answerOf(pml, writing("after"));
    assert.equal(await readFile(ws.file("made.txt"), "utf8"), "after");
    assert.match(await readFile(ws.file(".pml.json"), "utf8"), /"filesystem:write_file"/);
    const events = (await eventsOf(ws)).filter((event) => event.startsWith("always"));
    assert.deepEqual(events, ["always_not_kept", "always_not_kept", "always"]);
    await pml.close();
  });
}
