/**
 * Texts of servers with invisible characters, and misleading addresses.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { Scripted } from "../../src/servers/http/_stage_test.ts";
import { ERAS, type Message } from "../kit/json_rpc.ts";
import { repoFile } from "../kit/pml_command.ts";
import type { Step } from "../kit/script_server.ts";
import { call } from "./evil_servers.ts";
import { textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

/** A right-to-left override, a tag, a zero-width space and an escape, and how each is shown. */
const [RAW, SAFE] = ["a\u202e\u{e0041}\u200b\x1bb", "a\\u{202e}\\u{e0041}\\u{200b}\\u{1b}b"];
const HIDDEN = /[\u202e\u200b\p{Cc}\u{e0041}]/u;

function toolOf(text: string) {
  return {
    name: "t",
    title: text,
    description: `${text}\n👨‍👩‍👧 می\u200cخواهم`,
    annotations: { title: text },
    inputSchema: {
      type: "object",
      properties: { one: { type: "string", description: text, enum: [RAW], default: RAW } },
    },
  };
}

Deno.test("lists and schemas escape hidden characters in texts of servers, but not in values (GX18)", async () => {
  await using server = new Scripted();
  server.tools = [toolOf(RAW)];
  const pml = {
    version: 1,
    gateway: { tools_exposure: "full_proxy" },
    permissions: { allow: ["far:*"] },
    mcpServers: { far: { type: "http", url: server.url } },
  };
  await using scene = await makeScene({ era: "2026-07-28", pml });
  const { result } = await scene.pml.request("tools/list", {});
  const tools = result?.tools as unknown as readonly { readonly name: string }[];
  const listed = tools.find(({ name }) => name === "far__t");
  assert.deepEqual(listed, { ...toolOf(SAFE), name: "far__t" });
  const [shown] = JSON.parse(textOf(await scene.pml.callTool("schema", { tools: ["far:t"] })));
  assert.equal(shown.description, toolOf(SAFE).description);
  assert.deepEqual(shown.inputSchema, toolOf(SAFE).inputSchema);
  const typed = { tools: ["far:t"], as: "typescript" };
  const text = textOf(await scene.pml.callTool("schema", typed));
  assert.ok(text.includes("\\u{202e}"), text);
  assert.equal(textOf(await call(scene.pml, "far:t", { one: RAW })), "done");
});

const RESULT = { content: [{ type: "text", text: RAW }] };

Deno.test("a result with tag characters is passed on with a remark that counts them (GX18)", async () => {
  await using server = new Scripted(({ message: { id, method } }) =>
    method === "tools/call" ? Response.json({ jsonrpc: "2.0", id, result: RESULT }) : undefined
  );
  const pml = {
    version: 1,
    permissions: { allow: ["far:*"] },
    mcpServers: { far: { type: "http", url: server.url } },
  };
  await using scene = await makeScene({ era: "2025-11-25", pml });
  for (let time = 0; time < 2; time++) {
    const { result } = await call(scene.pml, "far:t");
    const [block, remark] = result?.content as unknown as readonly { readonly text: string }[];
    assert.equal(block?.text, RAW);
    assert.match(remark?.text ?? "", /^PML notes: this result has 1 invisible tag character /);
  }
});

function scripted() {
  const script = repoFile("tests/kit/script_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script];
  return {
    version: 1,
    permissions: { allow: ["s:*"] },
    mcpServers: { s: { command: process.execPath, args } },
  };
}

const elicit = (params: Record<string, unknown>): Step => ({
  ask: { method: "elicitation/create", params: { message: RAW, ...params } },
});

for (const era of ERAS) {
  Deno.test(`progress, logs and questions of servers escape hidden characters, on ${era} (GX12)`, async () => {
    const asked: Record<string, unknown>[] = [];
    const heard: Message[] = [];
    await using scene = await makeScene({
      era,
      pml: scripted(),
      capabilities: { elicitation: { form: {}, url: {} } },
      answer: (_, params) => {
        asked.push(params);
        return { action: "decline" };
      },
      onMessage: (message) => void heard.push(message),
    });
    const note = (method: string, params: object) => ({
      write: `${
        JSON.stringify({ jsonrpc: "2.0", method, params }).replace('"$TOKEN"', "$TOKEN")
      }\n`,
    });
    const requestedSchema = {
      type: "object",
      properties: { [RAW]: { type: "string", title: RAW, description: `${RAW}\n`, enum: [RAW] } },
    };
    const steps = [
      note("notifications/progress", { progressToken: "$TOKEN", progress: 1, message: RAW }),
      note("notifications/message", { level: "error", logger: RAW, data: { a: [RAW] } }),
      elicit({ requestedSchema }),
      elicit({ mode: "url", elicitationId: "1", url: `https://127.0.0.1/${RAW}` }),
    ];
    const _meta = { progressToken: "p" };
    const params = { name: "call", arguments: { tool: "s:run", arguments: { steps } }, _meta };
    await scene.pml.callTool("call", params.arguments);
    await scene.pml.request("logging/setLevel", { level: "debug" });
    const answer = await scene.pml.request("tools/call", params);
    assert.ok(answer.result !== undefined, JSON.stringify(answer));
    const [form, page] = asked.map((one) => JSON.parse(JSON.stringify(one)));
    const [[name, field]] = Object.entries(form.requestedSchema.properties) as [[string, unknown]];
    assert.equal(name, RAW);
    assert.deepEqual(field, { type: "string", title: SAFE, description: `${SAFE}\n`, enum: [RAW] });
    assert.doesNotMatch(form.message + page.message + page.url, HIDDEN);
    assert.match(page.url, /^https:\/\/127\.0\.0\.1\/a%E2%80%AE/);
    const told = heard.filter(({ method }) => /progress|message/.test(method ?? ""));
    assert.ok(told.length > 0);
    for (const one of told) assert.doesNotMatch(JSON.stringify(one), HIDDEN);
  });
}

Deno.test("only https: addresses and http: ones of this machine are offered (GX12)", async () => {
  const offered: unknown[] = [];
  await using scene = await makeScene({
    era: "2026-07-28",
    pml: scripted(),
    capabilities: { elicitation: { form: {}, url: {} } },
    answer: (_, { url }) => {
      offered.push(url);
      return { action: "decline" };
    },
  });
  const good = ["https://example.com/a", "http://localhost:1/a", "http://[::1]/a"];
  const bad = [
    ...["http://example.com/", "file:///etc/passwd", "javascript:alert(1)", "vscode://x/y"],
    ...["http://localhost.example.com/", "http://127.0.0.1@example.com/", "data:text/html,x", ""],
  ];
  for (const url of [...good, ...bad]) {
    await call(scene.pml, "s:run", { steps: [elicit({ mode: "url", elicitationId: "1", url })] });
  }
  assert.deepEqual(offered, good);
});
