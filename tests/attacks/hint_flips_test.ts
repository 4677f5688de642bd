/**
 * A tool whose server called it read-only when an answer for several tools allowed it, and that calls
 * it destructive later: the approval of the change does not revive the rule.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { toolId } from "../../src/core/tool_id.ts";
import { effectOf, MultiToolRules } from "../../src/policy/multi_tool_rules.ts";
import type { ToolDefinition } from "../../src/protocol/tool.ts";
import { definitions, filesOf } from "../said_scene.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import type { Table } from "../kit/said_server.ts";
import { codeOf, textOf } from "./oracles.ts";
import { answerOf, picked, questionOf, read } from "./questions.ts";
import { makeAttackWorkspace } from "./stage.ts";

const LOOK: ToolDefinition = {
  name: "look",
  inputSchema: { type: "object" },
  annotations: { readOnlyHint: true },
};
const FLIPPED: ToolDefinition = { ...LOOK, annotations: { destructiveHint: true } };
const ID = toolId("own", "look");
const CALL = { name: "own__look", arguments: {} };

/** Serves one tool to the next PML of the workspace. */
async function serve(ws: { file(name: string): string }, tool: ToolDefinition): Promise<void> {
  await writeFile(ws.file("own.json"), JSON.stringify(tableOf(tool)));
}

function tableOf(tool: ToolDefinition): Table {
  return {
    "tools/list": { result: { tools: [tool] } },
    "tools/call": { result: { content: [{ type: "text", text: "looked" }] } },
  };
}

Deno.test("a rule of an answer for several tools ends when its tool becomes destructive", async () => {
  const tables = { own: tableOf(LOOK) };
  const pml = {
    version: 1,
    permissions: { allow: [ID] },
    mcpServers: definitions(tables),
  };
  await using ws = await makeAttackWorkspace({ files: filesOf(tables), pml });
  const source = ws.file(".pml.json");
  const rules = new MultiToolRules(ws.home);
  await rules.add(source, [{ id: ID, effect: effectOf(LOOK) }]);
  {
    await using first = new RawStdio(ws, { era: "2025-11-25", capabilities: { elicitation: {} } });
    await first.open();
    assert.equal(textOf(await answerOf(first, CALL)), "looked");
    await first.close();
  }
  await serve(ws, FLIPPED);
  const text = await readFile(source, "utf8");
  await using second = new RawStdio(ws, { era: "2025-11-25", capabilities: { elicitation: {} } });
  await second.open();
  const change = await questionOf(second, CALL);
  await read();
  assert.equal(textOf(await change.answer(picked("Yes"))), "looked");
  // The rule is still in the file, and the change is approved.
  assert.equal(await readFile(source, "utf8"), text);
  const why = JSON.parse((await runPml(ws, ["why", ID, "--json"])).stdout);
  assert.deepEqual([why.verdict, why.rule], ["asks", ID]);
  for (const answer of ["No", "Yes"]) {
    const again = await questionOf(second, CALL);
    await read();
    const code = codeOf(await again.answer(picked(answer)));
    assert.equal(code, answer === "No" ? "APPROVAL_DECLINED" : undefined);
  }
  const last = await questionOf(second, CALL);
  assert.ok(last.replies.includes("Always"), last.text);
  await read();
  assert.equal(textOf(await last.answer(picked("Always"))), "looked");
  assert.equal(textOf(await answerOf(second, CALL)), "looked");
  await second.close();
});

Deno.test("a rule that no multi-tool answer wrote stays if the hints of its tool change", async () => {
  const tables = { own: tableOf(FLIPPED) };
  const pml = { version: 1, permissions: { allow: [ID] }, mcpServers: definitions(tables) };
  await using ws = await makeAttackWorkspace({ files: filesOf(tables), pml });
  await using only = new RawStdio(ws, { era: "2025-11-25", capabilities: { elicitation: {} } });
  await only.open();
  assert.equal(textOf(await answerOf(only, CALL)), "looked");
  await only.close();
});
