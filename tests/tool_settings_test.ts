/**
 * Settings for the tools of a server in its definition: disabled, renamed, described differently,
 * with fixed arguments; for every kind of server, for clients of both revisions and on the command
 * line.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { batchedCalls, codeOf, journalOf, textOf } from "./attacks/oracles.ts";
import { answerOf, picked, questionOf, read } from "./attacks/questions.ts";
import { makeScene, type Scene } from "./attacks/stage.ts";
import type { Json } from "./kit/json_rpc.ts";
import type { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { servedOverHttp, type Table } from "./kit/said_server.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { definitions, filesOf } from "./said_scene.ts";

import {
  call,
  env,
  inputSchema,
  KINDS,
  MERGED,
  sceneOf,
  sentIn,
  SETTINGS,
  TABLE,
  TOKEN,
  TOOLS,
  toolsOf,
  world,
} from "./tool_settings_scene.ts";

Deno.test("tools are listed, found and called as their definition specifies", async () => {
  await using http = servedOverHttp(TABLE);
  await using scene = await sceneOf("2026-07-28", {
    url: `http://127.0.0.1:${http.addr.port}/mcp`,
  });
  const { pml, ws } = scene;
  const tools = await toolsOf(pml);
  for (const kind of KINDS) {
    const own = tools.filter(({ name }) => String(name).startsWith(`${kind}__`));
    assert.deepEqual(own.map(({ name }) => name).toSorted(), [
      `${kind}__find_code`,
      `${kind}__star`,
    ]);
    const [found] = own;
    assert.equal(found?.description, SETTINGS.search_code.description);
    assert.deepEqual(found?.inputSchema, {
      ...inputSchema,
      additionalProperties: false,
    });
    assert.deepEqual(found?._meta, { "pml/name": "search_code" });
    // Each form of the name works.
    for (const name of [`${kind}:find_code`, `${kind}__find_code`]) {
      const sent = sentIn(await call(pml, name, { query: "q" }));
      assert.deepEqual(sent, { name: "search_code", arguments: MERGED });
    }
    const direct = await pml.callTool(`${kind}__find_code`, { query: "q" });
    assert.deepEqual(sentIn(direct), { name: "search_code", arguments: MERGED });
    await refused(pml, kind);
  }
  const found = textOf(await pml.callTool("search", { query: "zebras" }));
  assert.match(found, /newest:find_code\(query\)/);
  assert.doesNotMatch(found, /search_code|own words|owner/);
  const [shown] = JSON.parse(
    textOf(await pml.callTool("schema", { tools: ["older:find_code"] })),
  );
  assert.equal(shown.tool, "older:find_code");
  assert.deepEqual(Object.keys(shown.inputSchema.properties), ["query"]);
  await batched(pml);
  // The journal records the server's own names, and the arguments that the server received.
  const starts = (await journalOf(ws)).filter(({ kind }) => kind === "start") as unknown as Json[];
  assert.ok(starts.every(({ tool }) => !String(tool).includes("find_code")));
  const shape = { query: "string(1)", owner: "string(4)", token: `string(${TOKEN.length})` };
  assert.deepEqual(
    starts.find(({ tool }) => String(tool) === "http:search_code")?.arguments,
    shape,
  );
  assert.doesNotMatch(pml.stderr + JSON.stringify(starts), new RegExp(TOKEN));
});

/** Asserts that errors of disabled tools and fixed arguments name the file with the setting. */
async function refused(pml: RawStdio, kind: string): Promise<void> {
  const off = await call(pml, `${kind}:create_issue`);
  assert.match(textOf(off), /UNKNOWN_TOOL.*the tool is disabled in .*\.pml\.json/s);
  const set = await call(pml, `${kind}:find_code`, { query: "q", owner: "other" });
  assert.match(textOf(set), /BAD_ARGUMENTS.*"owner" is set in .*\.pml\.json/s);
}

async function batched(pml: RawStdio): Promise<void> {
  const calls = [
    ...KINDS.map((kind) => ({ tool: `${kind}:find_code`, arguments: { query: "q" } })),
    { tool: "older:create_issue" },
    { tool: "older:find_code", arguments: { query: "q", token: "mine" } },
  ];
  const items = batchedCalls(await pml.callTool("batch", { calls }));
  assert.deepEqual(
    items.slice(0, 4).map((item) => sentIn({ result: item } as never)),
    KINDS.map(() => ({ name: "search_code", arguments: MERGED })),
  );
  assert.deepEqual(items.slice(4).map(({ error }) => error?.code), [
    "UNKNOWN_TOOL",
    "BAD_ARGUMENTS",
  ]);
}

Deno.test("rules apply to the names and the arguments that the server receives", async () => {
  await using http = servedOverHttp(TABLE);
  const url = `http://127.0.0.1:${http.addr.port}/mcp`;
  const rules = {
    allow: KINDS.map((kind) => `${kind}:*`),
    ask: ["module:search_code"],
    deny: ["older:search_code", "http:find_code", `newest:search_code(token=${TOKEN})`],
  };
  await using scene = await sceneOf("2025-11-25", { url, rules });
  const { pml } = scene;
  const namesNow = async () => (await toolsOf(pml)).map(({ name }) => String(name));
  // A list waits for servers only for a limited time.
  await until(async () => (await namesNow()).includes("http__find_code"));
  const names = await namesNow();
  assert.ok(!names.includes("older__find_code"), "a rule goes with the server's own name");
  assert.ok(names.includes("http__find_code"), "and names no other one");
  for (const name of ["older:find_code", "older:search_code", "newest:find_code"]) {
    assert.equal(codeOf(await call(pml, name, { query: "q" })), "PERMISSION_DENIED", name);
  }
  const calls = [{ tool: "newest:find_code", arguments: { query: "q" } }];
  const [item] = batchedCalls(await pml.callTool("batch", { calls }));
  assert.equal(item?.error?.code, "PERMISSION_DENIED");
  assert.deepEqual(sentIn(await call(pml, "http:find_code", { query: "q" })).arguments, MERGED);
  await asks(scene);
});

/**
 * Asserts that the question shows all arguments, with the name of the variable in place of its
 * value.
 */
async function asks({ pml, ws }: Scene): Promise<void> {
  const wanted = { name: "module__find_code", arguments: { query: "q" } };
  const question = await questionOf(pml, wanted);
  assert.match(question.text, /Tool: "search_code"/);
  assert.deepEqual(question.replies, ["Yes", "No"], "no rule holds the value of a variable");
  assert.match(question.text, /"owner": "acme"/);
  assert.match(question.text, /"token": "\$\{CODE_TOKEN\}"/);
  assert.doesNotMatch(question.text, new RegExp(TOKEN));
  await read();
  const answered = await question.answer(picked("Yes"));
  assert.deepEqual(sentIn(answered).arguments, MERGED);
  const calls = [{ tool: "module:find_code", arguments: { query: "q" } }];
  const batch = await questionOf(pml, { name: "batch", arguments: { calls } });
  assert.match(batch.text, /"owner": "acme"/);
  assert.doesNotMatch(batch.text, new RegExp(TOKEN));
  await read();
  const [item] = batchedCalls(await batch.answer(picked("Yes")));
  assert.deepEqual(sentIn({ result: item } as never).arguments, MERGED);
  assert.doesNotMatch(JSON.stringify(await journalOf(ws)), new RegExp(TOKEN));
}

Deno.test("a rename to an existing name of the server disables both tools, and the error reports it", async () => {
  const settings = { search_code: { rename: "Star" } };
  const tables = { one: TABLE };
  const [[, definition] = []] = Object.entries(definitions(tables));
  await using scene = await makeScene({
    files: filesOf(tables),
    pml: {
      version: 1,
      permissions: { allow: ["one:*"] },
      mcpServers: { one: { ...definition, tools: settings } },
    },
  });
  const { pml, ws } = scene;
  for (const name of ["one:Star", "one:star", "one:search_code"]) {
    const text = textOf(await call(pml, name, { query: "q", owner: "a" }));
    assert.match(text, /UNKNOWN_TOOL.*renamed to .*\.pml\.json/s, name);
  }
  assert.deepEqual(sentIn(await call(pml, "one:create_issue")).name, "create_issue");
  const { stdout } = await runPml(ws, ["tools", "one"]);
  assert.match(stdout, /left out "search_code": it is renamed to "star"/);
  assert.match(stdout, /left out "star": "search_code" /);
});

Deno.test("a new name in a changed list and a rename to it disable each other", async () => {
  const grown = [...TOOLS, { name: "find_code", inputSchema: { type: "object" } }];
  const lists = [TOOLS, grown].map((tools) => ({ result: { tools } }));
  const tells = "notifications/tools/list_changed";
  const table: Table = {
    initialize: {
      result: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "said", version: "1" },
      },
    },
    "tools/list": lists,
    "tools/call": [{ result: { content: [{ type: "text", text: "grown" }] }, tells }],
  };
  const tables = { one: table };
  const [[, definition] = []] = Object.entries(definitions(tables));
  const tools = { search_code: { rename: "find_code" } };
  await using scene = await makeScene({
    files: filesOf(tables),
    pml: {
      version: 1,
      permissions: { allow: ["one:*"] },
      mcpServers: { one: { ...definition, tools } },
    },
  });
  const { pml } = scene;
  const args = { query: "q", owner: "a" };
  assert.equal(textOf(await call(pml, "one:find_code", args)), "grown");
  await until(async () => {
    const response = await call(pml, "one:find_code", args);
    return /UNKNOWN_TOOL.*renamed to/s.test(textOf(response));
  });
});

Deno.test("pins cover the server's own tools, without the settings of its definition", async () => {
  await using http = servedOverHttp(TABLE);
  const url = `http://127.0.0.1:${http.addr.port}/mcp`;
  const locks: unknown[] = [];
  for (const settings of [{}, SETTINGS]) {
    await using scene = await sceneOf("2026-07-28", { url, settings });
    const { pml, ws } = scene;
    const name = settings === SETTINGS ? "find_code" : "search_code";
    const own = settings === SETTINGS ? {} : { owner: "acme", token: TOKEN };
    for (const kind of KINDS) {
      const sent = sentIn(await call(pml, `${kind}:${name}`, { query: "q", ...own }));
      assert.deepEqual(sent.arguments, MERGED);
    }
    await pml.close();
    const { servers } = JSON.parse(await readFile(ws.file("pml.lock"), "utf8"));
    locks.push(Object.fromEntries(
      KINDS.map((kind) => [kind, servers[kind].tools.search_code]),
    ));
  }
  assert.deepEqual(locks[0], locks[1]);
});

Deno.test("the command line shows tools with the settings of their definition", async () => {
  await using http = servedOverHttp(TABLE);
  const url = `http://127.0.0.1:${http.addr.port}/mcp`;
  await using ws = await makeWorkspace({ ...world(url), trusted: true });
  const run = (...words: string[]) => runPml(ws, words, { env });
  const { stdout } = await run("tools");
  for (const kind of KINDS) {
    assert.match(stdout, new RegExp(`${kind}:find_code +runs +Zebras`));
    assert.match(stdout, new RegExp(`${kind} .*"no_such"`));
  }
  assert.doesNotMatch(stdout, /search_code|create_issue/);
  const shown = JSON.parse((await run("tools", "older:find_code", "--json")).stdout);
  assert.deepEqual([shown.id, shown.rules_name], ["older:find_code", "older:search_code"]);
  assert.deepEqual(Object.keys(shown.inputSchema.properties), ["query"]);
  const result = await run("search", "zebras");
  assert.match(result.stdout, /module:find_code/);
  const called = await run("call", "older:find_code", "query=q");
  assert.deepEqual(JSON.parse(called.stdout).arguments, MERGED);
  const why = await run("why", "older:find_code", '{"query": "q"}');
  assert.match(why.stdout, /^older:search_code: runs\n.*in rules, "older:find_code" has this name/);
  const off = await run("call", "older:create_issue");
  assert.equal(off.code, 1);
  assert.match(off.stderr, /disabled in .*\.pml\.json/);
  const missing = await runPml(ws, ["call", "older:find_code", "query=q"]);
  assert.match(missing.stderr, /requires CODE_TOKEN/);
});

Deno.test("settings of an untrusted file apply after the approval, not before", async () => {
  await using http = servedOverHttp(TABLE);
  const url = `http://127.0.0.1:${http.addr.port}/mcp`;
  await using scene = await sceneOf("2026-07-28", { url, trusted: false });
  const { pml } = scene;
  const wanted = {
    name: "call",
    arguments: { tool: "older:find_code", arguments: { query: "q" } },
  };
  const question = await questionOf(pml, wanted);
  assert.match(question.text, /the tool "search_code" is called "find_code"/);
  assert.match(question.text, /owner="acme", token with your key CODE_TOKEN/);
  assert.match(question.text, /the tool "create_issue" is left out/);
  assert.doesNotMatch(question.text, /"owner": "acme"/);
  await read();
  assert.deepEqual(sentIn(await question.answer(picked("Yes"))).arguments, MERGED);
  const off = await answerOf(pml, { name: "call", arguments: { tool: "older:create_issue" } });
  assert.match(textOf(off), /disabled in/);
});

Deno.test("a fixed argument that does not match the schema of the server is sent", async () => {
  const settings = { search_code: { arguments: { owner: "${CODE_TOKEN}" } } };
  await using http = servedOverHttp(TABLE);
  const url = `http://127.0.0.1:${http.addr.port}/mcp`;
  await using scene = await sceneOf("2026-07-28", { url, settings });
  const text = textOf(await call(scene.pml, "http:search_code", { query: "q" }));
  assert.equal(JSON.parse(text).arguments.owner, TOKEN);
});

Deno.test("errors of a disabled tool and of a fixed argument come before a server starts", async () => {
  const tools = { "*": { disabled: true }, kept: { arguments: { owner: "acme" } } };
  const mcpServers = { lost: { command: "no-such-program-here", tools } };
  const pml = { version: 1, permissions: { allow: ["lost:*"] }, mcpServers };
  await using ws = await makeWorkspace({ pml, trusted: true });
  const said = async (...words: string[]) => (await runPml(ws, ["call", ...words])).stderr;
  assert.match(await said("lost:anything"), /tool is disabled in/);
  const args = ["--args", '{"owner": "other"}'];
  assert.match(await said("lost:kept", ...args), /"owner" is set in/);
  assert.match(await said("lost:kept"), /no-such-program-here/);
});
