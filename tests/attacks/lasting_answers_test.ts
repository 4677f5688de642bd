/**
 * Answers to one question that cover several tools of a server, and answers that deny.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { ERAS } from "../kit/json_rpc.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPmlOnTerminal, type TerminalInput } from "../kit/run.ts";
import { answerOnPage, openPage } from "../kit/page.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { evil, ledgerOf } from "./evil_servers.ts";
import { codeOf, endWell, eventsOf } from "./oracles.ts";
import { answerOf, picked, questionOf, read, type ToolCall } from "./questions.ts";
import { makeScene, type SceneOptions } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
const READS = { readOnlyHint: true } as const;

function tool(name: string, annotations: object = READS) {
  return { name, description: `Does ${name}`, inputSchema: { type: "object" }, annotations };
}

const TOOLS = [tool("one"), tool("two"), tool("three"), tool("writes", {})];

function serving(more: SceneOptions = {}): SceneOptions {
  return {
    files: { "tools.json": JSON.stringify(TOOLS) },
    capabilities: CAN_ASK,
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*"] },
      mcpServers: { lists: evil("lists", "./tools.json") },
    },
    ...more,
  };
}

function calling(name: string): ToolCall {
  return { name: "call", arguments: { tool: `lists:${name}`, arguments: {} } };
}

async function rulesOf(ws: Workspace): Promise<Readonly<Record<string, readonly string[]>>> {
  return JSON.parse(await readFile(ws.file(".pml.json"), "utf8")).permissions;
}

for (const era of ERAS) {
  Deno.test(`one answer allows the tools that read, each by its name, on ${era}`, async () => {
    await using scene = await makeScene(serving({ era }));
    const { ws, pml } = scene;
    const question = await questionOf(pml, calling("one"));
    const all = "Always for these 3 tools that read";
    assert.deepEqual(question.replies, ["Yes", "For this session", "Always", all, "No"]);
    for (const name of ["one", "two", "three"]) {
      assert.match(
        question.text,
        new RegExp(`^ {4}"${name}"\\n {6}\\| description: Does ${name}$`, "m"),
      );
    }
    await read();
    assert.equal(codeOf(await question.answer(picked(all))), undefined);
    const allow = ["lists:one", "lists:two", "lists:three", "filesystem:*"];
    assert.deepEqual((await rulesOf(ws)).allow, allow);
    assert.equal(codeOf(await answerOf(pml, calling("three"))), undefined);
    const other = await questionOf(pml, calling("writes"));
    await read();
    await other.answer(picked("No"));
    await endWell(ws, pml);
  });

  Deno.test(`an answer for several tools after 0 ms counts once, on ${era}`, async () => {
    await using scene = await makeScene(serving({ era }));
    const { ws, pml } = scene;
    const question = await questionOf(pml, calling("one"));
    const [, , , all] = question.replies;
    assert.equal(codeOf(await question.answerOnce(picked(all))), undefined);
    assert.deepEqual((await rulesOf(ws)).allow, ["filesystem:*"]);
    assert.ok((await eventsOf(ws)).includes("always_not_kept"));
    await endWell(ws, pml);
  });

  Deno.test(`no answer of a client denies a tool from now on, on ${era}`, async () => {
    let reply: object = {};
    const answer = async () => {
      await read();
      return reply;
    };
    await using scene = await makeScene({ ...serving({ era }), answer });
    const { ws, pml } = scene;
    const before = await readFile(ws.file(".pml.json"), "utf8");
    const refusals: readonly object[] = [
      { action: "decline" },
      { action: "cancel" },
      { action: "accept", content: { answer: "Never" } },
      { action: "accept", content: { answer: "never" } },
    ];
    for (const refusal of refusals) {
      reply = refusal;
      const { name, arguments: args } = calling("one");
      assert.notEqual(codeOf(await pml.callTool(name, args)), undefined);
    }
    assert.equal(await readFile(ws.file(".pml.json"), "utf8"), before);
    assert.ok(!(await eventsOf(ws)).includes("never"));
    await endWell(ws, pml);
  });
}

Deno.test("a hint that changes between two processes asks again in spite of the answer", async () => {
  await using scene = await makeScene(serving({ era: "2026-07-28" }));
  const { ws, pml } = scene;
  const question = await questionOf(pml, calling("one"));
  const [, , , all] = question.replies;
  await read();
  await question.answer(picked(all));
  assert.ok((await rulesOf(ws)).allow?.includes("lists:two"));
  await endWell(ws, pml);
  const flipped = TOOLS.map((one) =>
    one.name === "two" ? { ...one, annotations: { ...READS, destructiveHint: true } } : one
  );
  await writeFile(ws.file("tools.json"), JSON.stringify(flipped));
  await using other = new RawStdio(ws, { era: "2026-07-28", capabilities: CAN_ASK });
  await other.open();
  const again = await questionOf(other, calling("two"));
  assert.match(again.text, /destructiveHint/);
  assert.deepEqual(again.replies, ["Yes", "No"]);
  await read();
  await again.answer(picked("No"));
  assert.deepEqual(
    await ledgerOf(ws, "lists").then((all) => all.filter((line) => line === "call two")),
    [],
  );
  // The user approves the change, which covers one call: the rule of the answer has ended.
  const changed = await questionOf(other, calling("two"));
  await read();
  assert.equal(codeOf(await changed.answer(picked("Yes"))), undefined);
  const ended = await questionOf(other, calling("two"));
  assert.match(ended.text, /this rule ended/);
  await read();
  await ended.answer(picked("No"));
  // A rule that the user writes for the tool alone applies.
  const typed: TerminalInput[] = [[/write exactly this/, "write"]];
  const allowed = await runPmlOnTerminal(ws, ["allow", "lists:two", "--workspace"], { typed });
  assert.equal(allowed.code, 0, allowed.stdout);
  assert.equal(codeOf(await answerOf(other, calling("two"))), undefined);
  await endWell(ws, other);
});

Deno.test("pml approve allows several tools after it showed their texts, with one key each", async () => {
  await using scene = await makeScene(serving({ capabilities: {} }));
  const { ws, pml } = scene;
  assert.equal(codeOf(await answerOf(pml, calling("writes"))), "APPROVAL_REQUIRED");
  assert.equal(codeOf(await answerOf(pml, calling("one"))), "APPROVAL_REQUIRED");
  const ran = await runPmlOnTerminal(ws, ["approve"], {
    typed: [
      [/Approve exactly this call\? .*\[t\] 4 tools/, "t"],
      [/Does three[^]*Allow these 4 tools\?/, "n"],
      [/\[r\] 3 tools that read {2}\[t\] 4 tools {2}\[N\] no {2}\[d\] never/, "r"],
      ["Allow these 3 tools?", "y"],
    ],
  });
  assert.match(ran.stdout, /by 3 rules in/);
  assert.deepEqual((await rulesOf(ws)).allow?.slice(0, 3), [
    "lists:one",
    "lists:two",
    "lists:three",
  ]);
  for (const name of ["one", "two"]) {
    await until(async () => codeOf(await answerOf(pml, calling(name))) === undefined);
  }
  assert.equal(codeOf(await answerOf(pml, calling("writes"))), "APPROVAL_REQUIRED");
  await endWell(ws, pml);
});

Deno.test("pml call asks once more after the key of an answer for several tools", async () => {
  await using scene = await makeScene(serving({ capabilities: {} }));
  const { ws, pml } = scene;
  const ran = await runPmlOnTerminal(ws, ["call", "lists:one"], {
    typed: [[/May it run\? .*\[r\] 3 tools that read/, "r"], ["Allow these 3 tools?", "n"]],
  });
  assert.equal(ran.code, 1, ran.stdout);
  assert.match(ran.stdout, /APPROVAL_DECLINED/);
  assert.ok(!(await rulesOf(ws)).allow?.includes("lists:one"));
  await endWell(ws, pml);
});

Deno.test("the page allows several tools with their texts shown, and only with the word", async () => {
  await using scene = await makeScene(serving({ capabilities: {} }));
  const { ws, pml } = scene;
  await answerOf(pml, calling("one"));
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const { replies } = await browser.waiting();
  const reads = replies.find(({ reply }) => reply === "always-reads");
  for (const name of ["one", "two", "three"]) {
    assert.match(reads?.reach ?? "", RegExp(`Does ${name}`));
  }
  for (const word of [undefined, "yes", reads?.word?.toUpperCase()]) {
    const { error } = await answerOnPage<{ error: { code: string; hint: string } }>(browser, {
      ...{ reply: "always-reads", word },
    });
    assert.deepEqual([error.code, error.hint], ["WORD_NEEDED", reads?.word]);
  }
  assert.equal((await rulesOf(ws)).allow?.includes("lists:one"), false);
  const { done } = await answerOnPage<{ done: boolean }>(browser, {
    ...{ reply: "always-reads", word: reads?.word },
  });
  assert.equal(done, true);
  assert.ok((await rulesOf(ws)).allow?.includes("lists:three"));
  assert.equal((await rulesOf(ws)).allow?.includes("lists:writes"), false);
  await endWell(ws, pml);
});

Deno.test("an answer on the page covers no tool that the server added after the user saw it", async () => {
  const file = serving().pml as { permissions: object };
  const permissions = { allow: ["filesystem:*", "lists:writes"] };
  await using scene = await makeScene(
    serving({ capabilities: {}, pml: { ...file, permissions } }),
  );
  const { ws, pml } = scene;
  await answerOf(pml, calling("one"));
  await using page = await openPage(ws);
  const browser = await page.signIn();
  const seen = await browser.waiting();
  await endWell(ws, pml);
  await writeFile(ws.file("tools.json"), JSON.stringify([...TOOLS, tool("four")]));
  await using other = new RawStdio(ws, { era: "2026-07-28", capabilities: {} });
  await other.open();
  // The server starts, and is asked for its tools again.
  assert.equal(codeOf(await answerOf(other, calling("writes"))), undefined);
  await until(async () => {
    assert.equal(codeOf(await answerOf(other, calling("one"))), "APPROVAL_REQUIRED");
    return (await browser.waiting()).id !== seen.id;
  });
  await read();
  const word = seen.replies.find(({ reply }) => reply === "always-reads")?.word;
  const { id, where, workspace } = seen;
  for (const reply of ["always-reads", "always-all", "always", "once"]) {
    const body = { id, where, workspace, reply, word };
    const { done } = await browser.post<{ done: boolean }>("/api/answer", body);
    assert.equal(done, false, reply);
  }
  assert.deepEqual((await rulesOf(ws)).allow, permissions.allow);
  const { replies } = await browser.waiting();
  const now = replies.find(({ reply }) => reply === "always-reads");
  assert.match(now?.reach ?? "", /Does four/);
  const { done } = await answerOnPage<{ done: boolean }>(browser, {
    ...{ reply: "always-reads", word: now?.word },
  });
  assert.equal(done, true);
  assert.ok((await rulesOf(ws)).allow?.includes("lists:four"));
  await endWell(ws, other);
});

Deno.test("never on a terminal denies the tool at once, also in a running PML", async () => {
  await using scene = await makeScene(serving({ capabilities: {} }));
  const { ws, pml } = scene;
  await answerOf(pml, calling("writes"));
  const ran = await runPmlOnTerminal(ws, ["approve"], { typed: [["[d] never", "d"]] });
  assert.match(ran.stdout, /rules remove lists:writes/);
  const typed: TerminalInput[] = [["[d] never", "d"]];
  const called = await runPmlOnTerminal(ws, ["call", "lists:one"], { typed });
  assert.match(called.stdout, /\.pml\.json[^]*rules remove lists:one/);
  assert.deepEqual((await rulesOf(ws)).deny, ["lists:one", "lists:writes"]);
  await until(async () => codeOf(await answerOf(pml, calling("writes"))) === "PERMISSION_DENIED");
  assert.ok((await eventsOf(ws)).includes("never"));
  await endWell(ws, pml);
});

Deno.test("keys within a second after a question appears do not answer it", async () => {
  await using scene = await makeScene(serving({ capabilities: {} }));
  const { ws, pml } = scene;
  await answerOf(pml, calling("writes"));
  const ran = await runPmlOnTerminal(ws, ["approve"], {
    isUnhurried: true,
    typed: [
      ["The id of this call", () => new Promise((resolve) => setTimeout(resolve, 600))],
      ["", "y"],
      ["Approve exactly this call?", "n"],
    ],
  });
  assert.match(ran.stdout, /Refused/);
  assert.equal(codeOf(await answerOf(pml, calling("writes"))), "APPROVAL_REQUIRED");
  await endWell(ws, pml);
});
