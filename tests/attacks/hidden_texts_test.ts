/**
 * Texts of tools that a question could omit: names, values of other types, unchanged texts, and
 * endless repetitions.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { definitionLines } from "../../src/policy/definition_texts.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import { until } from "../kit/wait.ts";
import { countOf, evil } from "./evil_servers.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { answerOf, picked, questionOf, read, type ToolCall } from "./questions.ts";
import { makeAttackWorkspace, makeScene, type SceneOptions } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
const ECHO: ToolCall = { name: "call", arguments: { tool: "lists:echo", arguments: {} } };
const OBJECT = { type: "object" } as const;

/** A definition with a text in each place that a reader of schemas could miss. */
const HIDING = {
  name: "echo",
  inputSchema: {
    ...OBJECT,
    $schema: "https://json-schema.org/hidden-01.ignore.all",
    $defs: "hidden-02",
    definitions: ["hidden-03"],
    properties: {
      a: { properties: "hidden-04", format: "hidden-zero-five" },
      b: { ...OBJECT, patternProperties: { "hidden-06": { type: "string" } } },
      c: { ...OBJECT, dependentRequired: { "hidden-07": [] }, type: { "hidden-08": {} } },
      d: { $defs: null, items: [[[{ "hidden-09": [[]] }]]], dependentSchemas: { "hidden-10": {} } },
      e: { type: { toString: "hidden-11" } },
    },
    "hidden-12": {},
    required: ["hidden-13"],
  },
  annotations: { "hidden-14": [] },
  execution: { "hidden-15": {} },
  _meta: { definitions: "hidden-16", properties: { "hidden-17": {} } },
  "hidden-18": {},
  "hidden-19": 7,
} as const;

const TEXTS = Array.from({ length: 19 }, (_, at) => `hidden-${String(at + 1).padStart(2, "0")}`)
  .map((text) => text === "hidden-05" ? "hidden-zero-five" : text);

function servingAs(definition: object, more: SceneOptions = {}): SceneOptions {
  return {
    files: { "tools.json": JSON.stringify([definition]) },
    capabilities: CAN_ASK,
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*"] },
      mcpServers: { lists: evil("lists", "./tools.json") },
    },
    ...more,
  };
}

Deno.test("the first question shows texts in names and in values of any type (GX14)", async () => {
  await using scene = await makeScene(servingAs(HIDING, { era: "2025-11-25" }));
  const { ws, pml } = scene;
  const { text, answer } = await questionOf(pml, ECHO);
  const listed = await pml.callTool("schema", { tools: ["lists:echo"] });
  for (const hidden of TEXTS) {
    assert.match(text, new RegExp(`^ {4}\\| .*${hidden}`, "m"), hidden);
  }
  assert.match(textOf(listed), /hidden-12/, "a model reads the names of members");
  await read();
  assert.equal(codeOf(await answer(picked("No"))), "APPROVAL_DECLINED");
  await endWell(ws, pml);
});

Deno.test("approving a change does not approve unchanged texts that were not read (GX14)", async () => {
  const first = { name: "echo", title: "one", description: "Reads keys", inputSchema: OBJECT };
  const others = [{ name: "args", inputSchema: OBJECT }];
  const { pml: file, ...options } = servingAs(first, { era: "2026-07-28" });
  await using ws = await makeAttackWorkspace({
    ...options,
    pml: { ...Object(file), permissions: { allow: ["filesystem:*", "lists:args"] } },
    files: { "tools.json": JSON.stringify([first, ...others]) },
  });
  assert.match((await runPml(ws, ["call", "lists:args"])).stdout, /tools\.json/);
  await writeFile(ws.file("tools.json"), JSON.stringify([{ ...first, title: "two" }, ...others]));
  // The test kills it.
  await using pml = new RawStdio(ws, {
    ownProcess: true,
    era: "2026-07-28",
    capabilities: CAN_ASK,
  });
  await pml.open();
  // It starts the server, so that PML reads the new list.
  await pml.callTool("call", { tool: "lists:args" });
  const change = await questionOf(pml, ECHO);
  assert.match(change.text, /changed since/);
  assert.doesNotMatch(change.text, /Reads keys/);
  const isAsked = () =>
    pml.messages.some((message) => /\| description: Reads keys/.test(JSON.stringify(message)));
  await read();
  void change.answerOnce(picked("Yes")).catch(() => {});
  await until(isAsked);
  assert.equal(await countOf(ws, "lists", "call echo"), 0);
  await pml.kill();
});

Deno.test("a small definition has no lines that repeat its names without end (GX14)", async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 1_000 }, (_, at) => [`p${at}`, { description: "text" }]),
  );
  const long = { ...OBJECT, properties: { ["n".repeat(200_000)]: { ...OBJECT, properties } } };
  let deep: Record<string, unknown> = { description: "THE END" };
  for (let level = 0; level < 2_000; level++) deep = { items: deep, description: "text" };
  for (const inputSchema of [long, { ...OBJECT, items: deep }]) {
    const definition = { name: "echo", inputSchema: inputSchema as typeof OBJECT };
    const lines = definitionLines(definition).join("\n");
    assert.ok(lines.length < 1_500_000, `${lines.length} characters`);
    assert.match(lines, inputSchema === long ? /p999/ : /THE END/);
  }
  await using scene = await makeScene(servingAs({ name: "echo", inputSchema: long }));
  const { ws, pml } = scene;
  assert.equal(codeOf(await answerOf(pml, ECHO)), "APPROVAL_REQUIRED");
  const waiting = (await runPml(ws, ["approve", "--json"])).stdout;
  assert.match(waiting, /p999/);
  assert.ok(waiting.length < 3_000_000, `${waiting.length} characters`);
  assert.equal(await readFile(ws.file("good.txt"), "utf8"), "good\n");
  await endWell(ws, pml);
});
