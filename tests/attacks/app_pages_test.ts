/**
 * A page of MCP Apps that calls every server's tools by their bare names, and a model that tries
 * every other way to the tools that are for pages alone.
 *
 * @module
 */

import assert from "node:assert/strict";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { approve } from "../capability_scene.ts";
import { type Era, ERAS, type Message } from "../kit/json_rpc.ts";
import type { Table } from "../kit/said_server.ts";
import { until } from "../kit/wait.ts";
import { definitions, filesOf } from "../said_scene.ts";
import { journalOf, textOf } from "./oracles.ts";
import { outcomeOf, picked, questionOf, read } from "./questions.ts";
import { makeScene, type Scene } from "./stage.ts";

const OBJECT = { type: "object" };
const ALONE = { ui: { visibility: ["app"] } };
const page = { resourceUri: "ui://app/view.html" };

function tool(name: string, _meta: object = {}) {
  return { name, description: `The tool ${name}`, inputSchema: OBJECT, _meta };
}

function tableOf(name: string, tools: readonly object[]): Table {
  return {
    "tools/list": { result: { tools } },
    "tools/call": { result: { content: [{ type: "text", text: `ran at ${name}` }] } },
    "resources/read": { result: { contents: [{ uri: page.resourceUri, text: "<p>" }] } },
  };
}

const TABLES = {
  evil: tableOf("evil", [
    tool("show", { ui: page }),
    tool("own_data", ALONE),
    tool("same"),
    tool("search", ALONE),
  ]),
  bank: tableOf("bank", [
    tool("balance", { ui: page }),
    tool("pay"),
    tool("pay_page", ALONE),
    tool("same"),
    tool("closed"),
    tool("asked"),
    tool("for_model", { ui: { visibility: ["model"] } }),
    tool("for_nobody", { ui: { visibility: [] } }),
  ]),
  // It has no page.
  files: tableOf("files", [tool("wipe"), tool("wipe_page", ALONE)]),
};
const RULES = {
  allow: ["evil:*", "bank:*", "files:*", "filesystem:*"],
  ask: ["bank:asked"],
  deny: ["bank:closed"],
};
const APPS = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };

async function sceneOf(era: Era, more: object = {}): Promise<Scene> {
  return await makeScene({
    era,
    limits: { first_list_ms: 60_000 },
    files: filesOf(TABLES),
    pml: { version: 1, permissions: RULES, mcpServers: definitions(TABLES), ...more },
    trusted: true,
    capabilities: { elicitation: { form: {} }, extensions: APPS },
  });
}

/** Returns the tools whose calls began, by the journal. */
async function startsOf({ ws }: Scene): Promise<readonly string[]> {
  const lines = await journalOf(ws) as unknown as readonly Record<string, string>[];
  const all = lines.filter(({ kind }) => kind === "start").flatMap(({ tool }) => tool ?? []);
  return [...new Set(all)].sort();
}

const shown = (message: Message) => JSON.stringify(message.result ?? message.error);

for (const era of ERAS) {
  Deno.test(`a page reaches by bare name only tools of servers with pages, by the rules, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { pml } = scene;
    await pml.request("tools/list", {});
    const call = (name: string) => pml.callTool(name, {});
    for (const [name, server] of [["own_data", "evil"], ["pay", "bank"], ["pay_page", "bank"]]) {
      assert.equal(textOf(await call(name ?? "")), `ran at ${server}`);
    }
    const names = ["wipe", "wipe_page", "for_model", "for_nobody", "read_text_file", "exec", "x"];
    for (const name of names) {
      assert.match(shown(await call(name)), /Cannot find the tool/, name);
    }
    const same = shown(await call("same"));
    assert.match(same, /servers with pages .*: .*bank:same.*evil:same/);
    assert.match(shown(await call("closed")), /a deny rule matches/);
    const question = await questionOf(pml, { name: "asked", arguments: {} });
    assert.match(
      question.text,
      /Its pages \(MCP Apps\) .*without the model: /,
    );
    assert.match(question.text, /"balance", "pay", "pay_page", "same", "asked"\n/);
    assert.match(question.text, /tools of other servers/);
    assert.match(question.text, /calls of a page/);
    await read();
    assert.match(shown(await question.answer(picked("No"))), /the user answered no/);
    // The name of a meta-tool is that of PML.
    assert.match(shown(await pml.callTool("search", { query: "pay" })), /bank:pay\(/);
    const reached = ["bank:asked", "bank:closed", "bank:pay", "bank:pay_page", "evil:own_data"];
    assert.deepEqual(await startsOf(scene), reached);
  });

  Deno.test(`an answer for a session to a model covers a page until the user denies it, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { pml, ws } = scene;
    await pml.request("tools/list", {});
    const asking = { name: "call", arguments: { tool: "bank:asked", arguments: {} } };
    const question = await questionOf(pml, asking);
    assert.match(question.text, /calls of a page/);
    assert.ok(question.replies.includes("For this session"), question.replies.join());
    await read();
    assert.match(shown(await question.answer(picked("For this session"))), /ran at bank/);
    assert.equal(textOf(await pml.callTool("asked", {})), "ran at bank");
    await appendFile(join(ws.home, "config.yaml"), "permissions:\n  deny: ['bank:asked']\n");
    await until(() => pml.stderr.includes("The configuration was applied"));
    // The lists load again, and a page still knows only the names of before.
    assert.match(shown(await pml.callTool("asked", {})), /a deny rule matches/);
    assert.equal(textOf(await pml.callTool("pay", {})), "ran at bank");
  });

  Deno.test(`a model reaches no tool for pages alone by a meta-tool, a plan or code, on ${era}`, async () => {
    await using scene = await sceneOf(era);
    const { pml } = scene;
    await pml.request("tools/list", {});
    const id = "bank:pay_page";
    const answers: readonly (readonly [string, Record<string, unknown>])[] = [
      ["call", { tool: id, arguments: {} }],
      ["call", { tool: "pay_page", arguments: {} }],
      ["call", { tool: "bank__pay_page", arguments: {} }],
      ["call", { tool: "mcp__bank__pay_page", arguments: {} }],
      ["schema", { tools: [id] }],
      ["batch", { calls: [{ tool: id }] }],
      ["execute_workflow", { plan: { tasks: [{ id: "a", tool: id, arguments: {} }] } }],
      ["execute_code", { code: "return await mcp.bank.pay_page({})" }],
      ["execute_code", { code: 'return await (mcp.bank as any)["pay_page"]({})' }],
    ];
    for (const [name, args] of answers) {
      const outcome = await outcomeOf(pml, { name, arguments: args });
      assert.equal(outcome.kind, "answered", name);
      const text = outcome.kind === "answered" ? shown(outcome.message) : "";
      assert.match(text, /UNKNOWN_TOOL|has no tool \\?\\?"pay_page/, `${name} ${text}`);
      assert.doesNotMatch(text, /ran at/);
    }
    for (const query of [{ query: "pay page" }, { server: "bank" }, { query: "pay_page" }]) {
      const text = textOf(await pml.callTool("search", { ...query, limit: 50 }));
      assert.match(text, /bank:pay\(/);
      assert.doesNotMatch(text, /pay_page|for_nobody/);
    }
    const all = textOf(await pml.callTool("call", { tool: "bank:@tools", arguments: {} }));
    assert.match(all, /bank:pay\(/);
    assert.doesNotMatch(all, /pay_page/);
    // A bare name that only one tool for models has.
    assert.equal(
      textOf(await pml.callTool("call", { tool: "wipe", arguments: {} })),
      "ran at files",
    );
    const text = shown(await pml.callTool("call", { tool: "bank:nothing", arguments: {} }));
    assert.doesNotMatch(text, /pay_page/);
  });
}

Deno.test("a saved capability cannot call a tool for pages alone", async () => {
  await using scene = await sceneOf("2025-11-25");
  const { pml, ws } = scene;
  await approve(ws, { "my:pays": "return await mcp.bank.pay_page({})" });
  await pml.request("tools/list", {});
  const text = shown(await pml.callTool("call", { tool: "my:pays", arguments: {} }));
  assert.match(text, /UNKNOWN_TOOL/);
  assert.doesNotMatch(text, /ran at/);
});

Deno.test("the trust question of a server states that its pages can call tools", async () => {
  await using scene = await makeScene({
    files: filesOf(TABLES),
    pml: { version: 1, permissions: RULES, mcpServers: definitions(TABLES) },
    trusted: false,
    capabilities: { elicitation: { form: {} }, extensions: APPS },
  });
  const { text } = await questionOf(scene.pml, { name: "evil__show", arguments: {} });
  assert.match(text, /\(MCP Apps\), .*call tools as/);
});
