/**
 * Errors of servers: PML names the server, quotes its message, and suggests the next step.
 *
 * @module
 */

import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import { makeScene, type Scene } from "./attacks/stage.ts";
import { call, listed } from "./full_scene.ts";
import type { Era, Message } from "./kit/json_rpc.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { NEWEST, servedOverHttp, type Table } from "./kit/said_server.ts";
import { definitions, filesOf, type Tables } from "./said_scene.ts";

const FAILS = { error: { code: -32603, message: "boom\nsecond line\u001b[31m" } };
const NOTHING: Table = {
  "tools/list": { result: { tools: [{ name: "go", inputSchema: { type: "object" } }] } },
};

/** Serves tables over stdio, and one of them over HTTP as `remote`. */
async function sceneOf(
  era: Era,
  tables: Tables,
): Promise<Scene & { readonly names: readonly string[] }> {
  const [[, first = {}] = []] = Object.entries(tables);
  const http = servedOverHttp(first);
  const mcpServers = {
    ...definitions(tables),
    remote: { type: "http", url: `http://127.0.0.1:${http.addr.port}/` },
  };
  const names = Object.keys(mcpServers);
  const scene = await makeScene({
    era,
    files: filesOf(tables),
    pml: { version: 1, permissions: { allow: names.map((name) => `${name}:*`) }, mcpServers },
    // PML asks about addresses that no list contains.
    capabilities: { elicitation: {} },
    answer: () => ({ action: "accept", content: { answer: "Yes" } }),
  });
  const dispose = async () => {
    await scene[Symbol.asyncDispose]();
    await http.shutdown();
  };
  return { ...scene, names, [Symbol.asyncDispose]: dispose };
}

/** Reads a resource, and answers the question of the newest revision about its address. */
async function readAfterYes(pml: RawStdio, uri: string): Promise<Message> {
  const first = await pml.request("resources/read", { uri });
  const { inputRequests = {}, requestState } = first.result ?? {};
  const [key] = Object.keys(inputRequests);
  if (key === undefined) return first;
  const inputResponses = { [key]: { action: "accept", content: { answer: "Yes" } } };
  return await pml.request("resources/read", { uri, inputResponses, requestState });
}

Deno.test("the error of a list of tools contains the server's name and its message", async () => {
  const table = { "tools/list": FAILS };
  await using scene = await sceneOf("2026-07-28", {
    older: table,
    newest: { ...NEWEST, ...table },
  });
  const { ws, pml, names } = scene;
  for (const name of names) {
    const text = textOf(await call(pml, `${name}:go`));
    assert.match(
      text,
      new RegExp(
        `^UPSTREAM_PROTOCOL: .*"${name}": .* ` +
          String.raw`-32603: boom\nsecond line\\u\{1b\}\[31m\n`,
      ),
    );
    assert.equal(textOf(await call(pml, `${name}:@tools`)), text);
    const { result } = await pml.callTool("schema", { tools: [`${name}:go`] });
    assert.match(JSON.stringify(result), new RegExp(`Cannot read tools/list of .*${name}`));
  }
  const found = textOf(await pml.callTool("search", { query: "go" }));
  assert.doesNotMatch(found, /BUG|report it|u\{a\}/);
  // The second line of the message does not look like a line of PML.
  assert.match(found, /\nolder failed: Cannot read [^\n]*boom\n {4}second line\\u\{1b\}/);
  const output = await runPml(ws, ["tools", "older"]);
  assert.match(
    output.stderr,
    /^error: UPSTREAM_PROTOCOL: Cannot read tools\/list of "older": .*boom\n/,
  );
  const all = await runPml(ws, ["tools"]);
  assert.match(
    all.stdout,
    /older \(.*\) failed: Cannot read tools\/list of "older": .*boom\n {4}/,
  );
  const direct = await runPml(ws, ["tools", "older:go"]);
  assert.match(
    direct.stderr,
    /^error: UPSTREAM_PROTOCOL: Cannot read .*boom\nsecond line\\u\{1b\}/,
  );
  assert.doesNotMatch(output.stderr + all.stdout + direct.stderr + pml.stderr, /BUG|report it/);
});

Deno.test("errors of other lists and requests name their server", async () => {
  const table = {
    ...NOTHING,
    ...Object.fromEntries(
      [
        ...["resources/list", "resources/templates/list", "prompts/list", "resources/subscribe"],
        ...["resources/read", "prompts/get", "completion/complete"],
      ].map((method) => [method, FAILS]),
    ),
  };
  await using scene = await sceneOf("2025-11-25", {
    older: table,
    newest: { ...NEWEST, ...table },
  });
  const { pml, names } = scene;
  // PML's own template is listed.
  assert.equal(
    (await listed(pml, "resources/templates/list", { key: "resourceTemplates" })).length,
    1,
  );
  assert.equal((await listed(pml, "prompts/list", { key: "prompts" })).length, 0);
  const lost = await pml.request("resources/read", { uri: "test://nobody" });
  const message = await pml.request("prompts/get", { name: "nobody" });
  for (const name of names) {
    const broken = new RegExp(`resources/list of "${name}": it answered .*boom\nsecond line`);
    assert.match(lost.error?.message ?? "", broken);
    const other = new RegExp(`prompts/list of "${name}": it answered .*boom\nsecond line`);
    assert.match(message.error?.message ?? "", other);
    const ref = { type: "ref/prompt", name: `${name}__p` };
    const argument = { name: "a", value: "b" };
    const asked = [
      readAfterYes(pml, `pml://${name}/test://a`),
      pml.request("prompts/get", { name: `${name}__p` }),
      pml.request("completion/complete", { ref, argument }),
    ];
    // Clients of the newest revision use subscriptions/listen instead.
    if (name !== "newest") {
      asked.push(pml.request("resources/subscribe", { uri: `pml://${name}/test://a` }));
    }
    for (const { error } of await Promise.all(asked)) {
      assert.equal(error?.code, -32603);
      assert.match(
        error?.message ?? "",
        new RegExp(`^"${name}" answered with the error -32603: boom\nsecond line`),
      );
    }
    assert.equal((await call(pml, `${name}:go`)).result?.isError, true);
  }
  const states = await pml.request("resources/read", { uri: "pml://servers" });
  assert.match(JSON.stringify(states), /no resources: Cannot read resources\/list of/);
  assert.doesNotMatch(JSON.stringify(pml.messages) + pml.stderr, /BUG|report it/);
});

Deno.test("an error of a tool keeps its line ends and no other control character", async () => {
  const message = "a\r\nb\rc\nd\u2028e\u202e\u0000";
  const table = { ...NOTHING, "tools/call": { error: { code: 7, message } } };
  await using scene = await sceneOf("2026-07-28", {
    older: table,
    newest: { ...NEWEST, ...table },
  });
  for (const name of scene.names) {
    assert.equal(
      textOf(await call(scene.pml, `${name}:go`)),
      `"${name}" answered with the error 7: a\nb\nc\nd\\u{2028}e\\u{202e}\\u{0}`,
    );
  }
});

Deno.test("a refusal by PML is not reported as an error of the server", async () => {
  const asks = { resultType: "input_required", inputRequests: { a: { method: "odd/thing" } } };
  const table = { ...NEWEST, "tools/list": { result: asks } };
  await using scene = await sceneOf("2026-07-28", { newest: table });
  const text = textOf(await call(scene.pml, "newest:go"));
  assert.match(
    text,
    /Cannot use "newest": it asked for "odd\/thing", but PML cannot pass odd\/thing on/,
  );
});
