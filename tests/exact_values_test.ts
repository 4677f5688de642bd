/**
 * Numbers that `JSON.parse` changes, such as integers beyond 2^53, keep their text between clients
 * and servers, with every way to call a tool.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { Scripted, stream } from "../src/servers/http/_stage_test.ts";
import { parseExact } from "../src/core/exact_json.ts";
import { textOf } from "./attacks/oracles.ts";
import { answerOf, picked, questionOf } from "./attacks/questions.ts";
import { makeAttackWorkspace, makeScene, type SceneOptions } from "./attacks/stage.ts";
import { servePml } from "./kit/pml_serve.ts";
import { EACH_WAY, RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";

const BIG = "725653563933458432";
const NUMBERS = `{"id":${BIG},"one":1.0,"deep":[1e400,-0,{"hundred":1E2}],"text":"1.0"}`;

const SCHEMA =
  `{"type":"object","properties":{"id":{"type":"integer","default":${BIG},"enum":[${BIG},1]},` +
  `"one":{"type":"number","minimum":0.0,"maximum":1e400,"default":1.0}}}`;
const PROGRESS = `"progress":1.0,"total":${BIG}`;

/**
 * The program of the server: returns the text of the arguments as text and as structured content.
 */
const ANSWER = `
const argumentsIn = (line) => {
  const from = line.indexOf('"arguments":') + 12;
  for (let at = from, depth = 0; at < line.length; at++) {
    if (line[at] === "{") depth++;
    if (line[at] === "}" && --depth === 0) return line.slice(from, at + 1);
  }
};
const answerTo = (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return undefined;
  const own = argumentsIn(line);
  const pad = params?.arguments?.pad === undefined ? "" : "x".repeat(params.arguments.pad);
  const result = method === "initialize"
    ? '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"t","version":"1"}}'
    : method === "tools/list"
    ? '{"tools":[{"name":"echo","inputSchema":${SCHEMA}}]}'
    : method === "resources/list"
    ? '{"resources":[{"uri":"x:y","name":"y","size":${BIG},"_meta":{"one":1.0}}]}'
    : method === "prompts/list"
    ? '{"prompts":[{"name":"p","_meta":{"big":${BIG}}}]}'
    : '{"content":[{"type":"text","text":' + JSON.stringify("received " + own) +
      '}],"structuredContent":' + own + ',"_meta":{"pad":"' + pad + '","big":${BIG}}}';
  return '{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',"result":' + result + "}";
};`;

const SERVER = `${ANSWER}
let rest = "";
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const line of lines) {
    const { progressToken } = JSON.parse(line).params?._meta ?? {};
    const token = JSON.stringify(progressToken);
    if (progressToken !== undefined) {
      console.log('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":' +
        token + ',${PROGRESS}}}');
    }
    const answer = answerTo(line);
    if (answer !== undefined) console.log(answer);
  }
}`;

const MODULE = `
  export const __meta__ = {
    name: "m",
    tools: {
      kinds: { inputSchema: { type: "object", properties: { id: { type: "integer" } } } },
    },
  };
  export const kinds = ({ id, one }) => ({ kind: typeof id, next: id + 1n, one: typeof one });`;

/** Lists contain the tools of servers, and the meta-tools. */
const FULL = {
  tools_exposure: "hybrid",
  hybrid: { expose_underlying_tools: true, apply_semantic_filter: false },
};
const PERMISSIONS = { allow: ["s:*", "m:*"] };
const SERVERS = { s: { command: process.execPath, args: ["run", "--quiet", "server.js"] } };

function options(more: object = {}): SceneOptions {
  return {
    files: { "server.js": SERVER, "m.js": MODULE },
    pml: {
      version: 1,
      permissions: PERMISSIONS,
      mcpServers: SERVERS,
      private_mcps: { m: { type: "deno", path: "./m.js" } },
      ...more,
    },
    limits: { first_list_ms: 60_000 },
  };
}

const numbers = () => parseExact(NUMBERS) as Record<string, unknown>;

/** Asserts that the numbers reach the server, and come back in the result. */
async function assertExact(pml: RawStdio, name: string, more: object = {}): Promise<void> {
  for (let time = 0; time < 2; time++) {
    const answer = await pml.callTool(name, { ...numbers(), ...more });
    assert.ok(textOf(answer).startsWith(`received ${NUMBERS.slice(0, -1)}`), textOf(answer));
    const [line = ""] = pml.stdout.split("\n").filter((line) => line !== "").slice(-1);
    assert.ok(line.includes(`"structuredContent":${NUMBERS.slice(0, -1)}`), line.slice(0, 500));
    assert.ok(line.includes(`"big":${BIG}`), line.slice(0, 500));
  }
}

for (const { on, ...way } of EACH_WAY) {
  Deno.test(`numbers keep their text to a stdio server and back, on ${on}`, async () => {
    await using scene = await makeScene({ ...options(), ...way });
    await scene.pml.request("tools/list");
    await assertExact(scene.pml, "s__echo");
    await assertExact(scene.pml, "s__echo", { pad: 6_000 });
    scene.pml.assertAnswered();
  });
}

for (const { on, ...way } of EACH_WAY) {
  Deno.test(`numbers in lists and progress keep their text, on ${on}`, async () => {
    await using scene = await makeScene({ ...options({ gateway: FULL }), ...way });
    const { pml } = scene;
    const lineOf = async (method: string) => {
      await pml.request(method);
      return pml.stdout.trimEnd().split("\n").at(-1) ?? "";
    };
    const tools = await lineOf("tools/list");
    assert.ok(tools.includes(`"inputSchema":${SCHEMA}`), tools);
    // These lists do not wait for a server that was not listed yet.
    const resources = `"size":${BIG},"_meta":{"one":1.0}`;
    await until(async () => (await lineOf("resources/list")).includes(resources));
    const prompts = `"_meta":{"big":${BIG}}`;
    await until(async () => (await lineOf("prompts/list")).includes(prompts));
    await pml.request("tools/call", {
      ...{ name: "s__echo", arguments: {}, _meta: { progressToken: "p" } },
    });
    const progress = pml.stdout.split("\n").find((line) => line.includes("notifications/progress"));
    assert.ok(progress?.includes(PROGRESS), progress);
    const text = textOf(await pml.callTool("schema", { tools: ["s:echo"] }));
    assert.ok(text.includes(BIG) && text.includes("1.0"), text);
  });
}

Deno.test("a later process shows numbers of a cached list with their text", async () => {
  await using ws = await makeAttackWorkspace(options({ gateway: FULL }));
  for (let time = 0; time < 2; time++) {
    await using pml = new RawStdio(ws);
    await pml.open();
    await pml.request("tools/list");
    const line = pml.stdout.trimEnd().split("\n").at(-1) ?? "";
    assert.ok(line.includes(`"inputSchema":${SCHEMA}`), line);
  }
});

Deno.test("numbers of fixed arguments reach the server with their text", async () => {
  const fixed = parseExact(`{"id":${BIG},"one":1.0,"all":[{"far":-1e400}]}`);
  const s = { ...SERVERS.s, tools: { echo: { arguments: fixed } } };
  await using scene = await makeScene(options({ mcpServers: { s } }));
  const call = { tool: "s:echo", arguments: { more: 1 } };
  const said = `received {"more":1,"id":${BIG},"one":1.0,"all":[{"far":-1e400}]}`;
  assert.equal(textOf(await scene.pml.callTool("call", call)), said);
});

Deno.test("numbers keep their text through an attached pml stdio", async () => {
  await using ws = await makeAttackWorkspace(options());
  await using _served = await servePml(ws);
  await using pml = new RawStdio(ws);
  await pml.open();
  await pml.request("tools/list");
  await assertExact(pml, "s__echo");
});

for (const kind of ["a JSON text", "events"]) {
  Deno.test(`numbers keep their text to a server over HTTP that answers with ${kind}`, async () => {
    const answerTo = new Function("line", `${ANSWER}\nreturn answerTo(line);`);
    await using server = new Scripted(({ message, text }) => {
      if (message.method !== "tools/call") return undefined;
      const answer = String(answerTo(text));
      if (kind === "events") return stream([`data: ${answer}\n\n`]);
      return new Response(answer, { headers: { "content-type": "application/json" } });
    });
    const mcpServers = { s: { type: "http", url: server.url } };
    await using scene = await makeScene(options({ mcpServers }));
    await scene.pml.request("tools/list");
    await assertExact(scene.pml, "s__t");
  });
}

Deno.test("numbers keep their text through call, batch, plans and code, and modules get BigInts", async () => {
  await using scene = await makeScene(options());
  const { pml } = scene;
  const call = { tool: "s:echo", arguments: numbers() };
  const tasks = [
    { id: "a", ...call },
    { id: "b", tool: "s:echo", arguments: { id: { $from: "a", path: "/id" } } },
  ];
  const received = `received ${NUMBERS}`;
  assert.equal(textOf(await pml.callTool("call", call)), received);
  assert.equal(textOf(await pml.callTool("call", { ...call, arguments: NUMBERS })), received);
  const batch = textOf(await pml.callTool("batch", { calls: [call] }));
  assert.ok(batch.includes(received), batch);
  const plan = textOf(await pml.callTool("execute_workflow", { plan: { tasks } }));
  assert.ok(plan.includes(BIG), plan);
  const code = `
    const { id } = await mcp.s.echo({ id: ${BIG}n });
    return [typeof id, id + 1n, await mcp.m.kinds({ id: ${BIG}n, one: 1 })];`;
  const result = textOf(await pml.callTool("execute_code", { code }));
  const next = BigInt(BIG) + 1n;
  assert.equal(result, `["bigint",${next},{"kind":"bigint","next":${next},"one":"number"}]`);
  pml.assertAnswered();
});

Deno.test("a question and its rule contain the digits of a number", async () => {
  await using scene = await makeScene(
    {
      ...options({ permissions: { allow: [`s:echo({"id":${BIG}})`] } }),
      capabilities: { elicitation: { form: {} } },
    },
  );
  const { pml } = scene;
  const callOf = (digits: string) => ({
    name: "call",
    arguments: parseExact(`{"tool":"s:echo","arguments":{"id":${digits}}}`),
  });
  assert.equal(textOf(await answerOf(pml, callOf(BIG))), `received {"id":${BIG}}`);
  for (const other of ["725653563933458450", "1e400"]) {
    const { text, answer } = await questionOf(pml, callOf(other));
    assert.ok(text.includes(other), text);
    assert.equal(textOf(await answer(picked("Yes"))), `received {"id":${other}}`);
  }
});

Deno.test("a member that occurs twice at any depth reaches the server once, with its last value", async () => {
  await using scene = await makeScene(options());
  const { pml } = scene;
  const twice = '{"a":{"id":1.0,"id":2.0},"b":1,"b":3.0}';
  await pml.sendText(
    `{"jsonrpc":"2.0","id":"d","method":"tools/call","params":{"name":"s__echo","arguments":${twice}}}\n`,
  );
  assert.equal(textOf(await pml.expect("d")), 'received {"a":{"id":2.0},"b":3.0}');
});

Deno.test("pml call passes numbers on as they are typed", async () => {
  await using ws = await makeAttackWorkspace(options());
  for (const args of [[`id:=${BIG}`, "one:=1.0"], [`{"id":${BIG},"one":1.0}`]]) {
    const { stdout } = await runPml(ws, ["call", "s:echo", ...args]);
    assert.ok(stdout.includes(BIG), stdout);
    assert.ok(stdout.includes("1.0"), stdout);
  }
  const { stdout } = await runPml(ws, ["call", "s:echo", `id:=${BIG}`, "--json"]);
  assert.ok(stdout.includes(`"id":${BIG}`) || stdout.includes(`"id": ${BIG}`), stdout);
});
