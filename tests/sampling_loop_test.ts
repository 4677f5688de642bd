/**
 * Tool calls by a model while a server samples: they pass the same checks as every call.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, eventsOf, journalOf, textOf } from "./attacks/oracles.ts";
import { call, KINDS } from "./full_scene.ts";
import { FakeProvider } from "./kit/fake_provider.ts";
import { sampledIn, samplingScene } from "./sampling_scene.ts";

const ALLOWED = { allow: KINDS.map((name) => `${name}:@sampling`) };
const YES = { action: "accept", content: { answer: "Yes" } };

Deno.test("calls by a model pass the same checks as other calls, and the user is asked", async () => {
  const requests: string[] = [];
  const reads = { uses: [{ name: "filesystem__read_file", input: { path: "good.txt" } }] };
  const lists = {
    uses: [{ name: "filesystem__write_file", input: { path: "n.txt", content: "n" } }],
  };
  for (const kind of KINDS) {
    await using provider = new FakeProvider("anthropic", reads, lists, { text: "done" });
    await using scene = await samplingScene({
      ...{ era: "2026-07-28", provider, rules: ALLOWED },
      settings: { allowed_tool_patterns: ["filesystem:*"] },
      answer: (_, params) => {
        requests.push(String(params.message));
        return YES;
      },
    });
    const { ws, pml } = scene;
    const args = { _meta: { allowedToolPatterns: ["filesystem:*_file"] } };
    const answer = await call(pml, `${kind}:sample`, args);
    const { one } = JSON.parse(textOf(answer));
    assert.deepEqual(one.content, { type: "text", text: "done" });
    const names = provider.bodies[0].tools.map(({ name }: { name: string }) => name);
    assert.ok(names.includes("filesystem__read_file"));
    assert.ok(names.every((name: string) => /^filesystem__\w+_file$/.test(name)), names.join());
    const results = provider.bodies.slice(1).map(({ messages }) => messages.at(-1).content[0]);
    assert.equal(results[0].content[0].text, "good\n");
    // Reading is allowed; writing asks.
    assert.match(requests.pop() ?? "", /Tool: "write_file"[^]*n\.txt/);
    assert.equal(requests.length, 0);
    assert.equal(await readFile(ws.file("n.txt"), "utf8"), "n");
    const lines = (await journalOf(ws)).filter(({ kind, via }) =>
      kind === "start" && via === "sampling"
    );
    assert.deepEqual([...new Set(lines.map(({ tool }) => tool))], [
      "filesystem:read_file",
      "filesystem:write_file",
    ]);
    const runs = new Set(lines.map((line) => Object(line).run));
    assert.equal(runs.size, 1);
    assert.deepEqual(
      (await sampledIn(ws)).map((about) => Object(about).run),
      Array(3).fill([...runs][0]),
    );
    assert.ok((await eventsOf(ws)).includes("sampled"));
    assert.equal(codeOf(answer), undefined);
  }
});

Deno.test("a model gets only tools of the client's tool set", async () => {
  const write = {
    uses: [{ name: "filesystem__write_file", input: { path: "n.txt", content: "n" } }],
  };
  await using provider = new FakeProvider("anthropic", write, { text: "done" });
  await using scene = await samplingScene({
    ...{ era: "2025-11-25", provider, rules: { allow: [...ALLOWED.allow, "filesystem:*"] } },
    settings: { allowed_tool_patterns: ["filesystem:*"] },
    prepare: async (ws) => {
      const sets = { few: ["legacy:*", "filesystem:read_file"] };
      const text = `toolsets: ${JSON.stringify(sets)}\nclient_toolsets: { pml-test: few }\n`;
      await writeFile(join(ws.home, "config.yaml"), text, { flag: "a" });
    },
  });
  const args = { _meta: { allowedToolPatterns: ["*"] } };
  await call(scene.pml, "legacy:sample", args);
  const names = provider.bodies[0].tools.map(({ name }: { name: string }) => name);
  assert.deepEqual(names, ["filesystem__read_file"]);
  const [{ content }] = provider.bodies[1].messages.at(-1).content;
  assert.match(content[0].text, /no tool/);
  await assert.rejects(readFile(scene.ws.file("n.txt")), { code: "ENOENT" });
});

Deno.test("an answer for a session is not for calls of a model while a server samples", async () => {
  const making = (path: string) => ({ name: "filesystem__create_directory", input: { path } });
  await using provider = new FakeProvider("anthropic", { uses: [making("two")] }, { text: "done" });
  const texts: string[] = [];
  await using scene = await samplingScene({
    ...{ era: "2026-07-28", provider, rules: ALLOWED },
    settings: { allowed_tool_patterns: ["filesystem:*"] },
    answer: async (_, params) => {
      texts.push(String(params.message));
      await new Promise((resolve) => setTimeout(resolve, 330));
      return { action: "accept", content: { answer: "For this session" } };
    },
  });
  const made = (path: string) => call(scene.pml, "filesystem:create_directory", { path });
  assert.equal(codeOf(await made("one")), undefined);
  assert.equal(codeOf(await made("again")), undefined);
  assert.equal(texts.length, 1);
  const args = { _meta: { allowedToolPatterns: ["filesystem:*"] } };
  await call(scene.pml, `${KINDS[0]}:sample`, args);
  assert.ok(texts.some((text) => text.includes("two")), "the model's call was not asked about");
});
