/**
 * A spawned PML whose registry is a spawned hub.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { answerOf, picked, questionOf, read } from "./attacks/questions.ts";
import { HUB } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { GREETER, serveHub } from "./kit/registry_contract.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const PLAIN = GREETER.replace(`permissions: { env: ["GREETING"] },`, "");
const CALL = { name: "call", arguments: { tool: "greeter:greet", arguments: { who: "Ada" } } };
/** A capability: a module whose name is a namespace and an action. */
const SHOUT = `export const __meta__ = {
  name: "text", version: "0.1.0",
  tools: { shout: { description: "Write a text in capitals", inputSchema: { type: "object" } } },
};
export function shout({ text }) { return text.toUpperCase(); }
`;

function textOf(message: { readonly result?: unknown }): string {
  const { content } = message.result as { content: readonly { text: string }[] };
  return content.map(({ text }) => text).join();
}

Deno.test("a module of a hub is found, approved and run, and asks again about a new version", async () => {
  await using team = await makeWorkspace({
    files: { "served/greeter.ts": PLAIN, "served/text__shout.ts": SHOUT },
  });
  const imported = () => runPml(team, ["import", "served"], { command: HUB });
  assert.equal((await imported()).code, 0);
  await using hub = await serveHub(team);
  const { url } = JSON.parse(hub.said);
  await using ws = await makeWorkspace({
    env: { PML_REGISTRIES: url },
    pml: { version: 1, permissions: { allow: ["*"] } },
  });
  {
    await using pml = new RawStdio(ws, {
      era: "2026-07-28",
      answer: undefined,
      capabilities: { elicitation: {} },
    });
    await pml.open();
    const found = textOf(await pml.callTool("search", { query: "greet somebody" }));
    assert.match(found, /greeter:greet\(who\?\).* \[asks, not installed\]/, found);
    const capability = textOf(await pml.callTool("search", { query: "text in capitals" }));
    assert.match(capability, /text:shout/, capability);
    const question = await questionOf(pml, CALL);
    assert.match(question.text, /Yes lets PML use "greeter" in this workspace/);
    assert.match(question.text, /its code: sha256-[0-9a-f]{64}/);
    assert.match(question.text, new RegExp(`registry "${url}"`));
    await read();
    assert.equal(textOf(await question.answer(picked("Yes"))), "hello Ada");
    assert.equal((await pml.close()).code, 0);
  }
  const lock = JSON.parse(await readFile(ws.file("pml.lock"), "utf8"));
  assert.deepEqual([lock.servers.greeter.source, lock.servers.greeter.version], [url, "1.2.0"]);

  const newer = PLAIN.replace("1.2.0", "1.3.0").replace("hello", "good day");
  await Deno.writeTextFile(team.file("served/greeter.ts"), newer);
  assert.equal((await imported()).code, 0);
  assert.equal((await runPml(ws, ["tools", "--refresh"])).code, 0);
  {
    await using pml = new RawStdio(ws, {
      era: "2026-07-28",
      answer: undefined,
      capabilities: { elicitation: {} },
    });
    await pml.open();
    const question = await questionOf(pml, CALL);
    assert.match(question.text, /version: was "1\.2\.0", is "1\.3\.0"/);
    assert.doesNotMatch(question.text, /The tool "/);
    await read();
    assert.equal(textOf(await question.answer(picked("Yes"))), "good day Ada");
    assert.equal((await pml.close()).code, 0);
  }
  // An approved module runs without the hub.
  assert.equal((await hub.end()).code, 143);
  await using pml = new RawStdio(ws, { era: "2026-07-28", capabilities: { elicitation: {} } });
  await pml.open();
  assert.equal(textOf(await answerOf(pml, CALL)), "good day Ada");
  assert.equal((await pml.close()).code, 0);
});
