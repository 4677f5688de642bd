/**
 * Values that JSON can contain and few programs expect: halves of characters, numbers that overflow
 * to infinity, and names of object prototypes. They affect only their sender.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { ERAS, type Message } from "../kit/json_rpc.ts";
import { repoFile } from "../kit/pml_command.ts";
import { servePml } from "../kit/pml_serve.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import { NEWEST, type Table } from "../kit/said_server.ts";
import { until } from "../kit/wait.ts";
import { definitions, filesOf } from "../said_scene.ts";
import { ledgerScene, runCode, textsOf, valueOf, withoutTypeCheck } from "./code_tools.ts";
import { assertServes, codeOf, endWell, textOf } from "./oracles.ts";
import { outcomeOf, picked, questionOf, read } from "./questions.ts";
import { makeAttackWorkspace, makeScene, type Scene } from "./stage.ts";

const CAN_ASK = { elicitation: { form: {} } } as const;
const OURS = /BUG|bug in PML|Cannot convert object|not iterable/;
const TOOL = { name: "go", description: "Goes", inputSchema: { type: "object" } };

/** Capabilities of a client, as text. */
const ODD = [
  '{"experimental":{"a":{"b":1e400}}}',
  '{"experimental":{"\\ud800":{}}}',
  '{"elicitation":{"form":{"x":"\\udfff"}}}',
];

for (const era of ERAS) {
  Deno.test(`a client may declare capabilities that JSON cannot represent, on ${era} (ST1)`, async () => {
    for (const odd of ODD) {
      await using ws = await makeAttackWorkspace();
      await using pml = new RawStdio(ws, { era });
      const ask = async (id: string, method: string, params: string): Promise<Message> => {
        pml.noteAsked(id);
        const answer = pml.expect(id);
        await pml.sendText(
          `{"jsonrpc":"2.0","id":"${id}","method":"${method}","params":${params}}\n`,
        );
        return await answer;
      };
      const call = '"name":"filesystem__read_file","arguments":{"path":"good.txt"}';
      const client = '{"name":"x","version":"1"}';
      const key = "io.modelcontextprotocol";
      const answers = era === "2025-11-25"
        ? [
          await ask(
            "a",
            "initialize",
            `{"protocolVersion":"${era}","capabilities":${odd},"clientInfo":${client}}`,
          ),
          await ask("b", "tools/call", `{${call}}`),
        ]
        : [
          await ask(
            "a",
            "tools/call",
            `{${call},"_meta":{"${key}/protocolVersion":"${era}","${key}/clientInfo":${client},` +
              `"${key}/clientCapabilities":${odd}}}`,
          ),
        ];
      for (const { error } of answers) assert.equal(error, undefined, odd);
      assert.equal(textOf(answers.at(-1) ?? {}), "good\n");
      await endWell(ws, pml);
    }
  });
}

Deno.test("a question about a request with half a character is answered like any other (PM16)", async () => {
  await using scene = await ledgerScene({ era: "2026-07-28", capabilities: CAN_ASK });
  const { ws, pml } = scene;
  const code = withoutTypeCheck(
    'const half = "\ud800"; return (await mcp.led.gated({ text: "x" })).line',
  );
  // More of them than may wait at once.
  for (let round = 0; round < 5; round++) {
    const question = await questionOf(pml, { name: "execute_code", arguments: { code } });
    await read();
    assert.equal(textsOf(await question.answer(picked("Yes")))[0], "gated x");
  }
  for (
    const save_as of [{ name: "my:x", parameters: { a: "\ud800" } }, {
      name: "my:x",
      description: "\ud800",
    }]
  ) {
    const outcome = await outcomeOf(pml, {
      name: "execute_code",
      arguments: { code: "return 1", save_as },
    });
    assert.equal(outcome.kind, "answered");
    assert.doesNotMatch(JSON.stringify(outcome), OURS);
    assert.match(JSON.stringify(outcome), /BAD_ARGUMENTS/);
  }
  await endWell(ws, pml);
});

Deno.test("a tool whose server cut a text within a character is called, and asks when it changes", async () => {
  const tool = (description: string) => ({ result: { tools: [{ ...TOOL, description }] } });
  const done = { content: [{ type: "text", text: "done" }] };
  const table: Table = {
    "tools/list": [tool("cut \ud83d"), tool("cut \ud83e")],
    "tools/call": { result: done, tells: "notifications/tools/list_changed" },
  };
  await using scene = await sceneOf({ older: table, newest: { ...NEWEST, ...table } });
  const { pml } = scene;
  for (const name of ["older", "newest"]) {
    const call = { name: "call", arguments: { tool: `${name}:go`, arguments: {} } };
    assert.equal(textOf(await pml.callTool(call.name, call.arguments)), "done");
    if (name === "newest") continue;
    await until(async () => (await outcomeOf(pml, call)).kind === "asked");
    assert.match((await questionOf(pml, call)).text, /"description" was: [^]*ud83d[^]*ud83e/);
  }
  assert.doesNotMatch(pml.stdout, OURS);
  await pml.close();
  assert.doesNotMatch(pml.stderr, OURS);
});

Deno.test("a server gets only answers that the client sent, to a question of any name", async () => {
  for (const key of ["constructor", "toString", "__proto__"]) {
    const form = { message: "Name?", requestedSchema: { type: "object", properties: {} } };
    const inputRequests = JSON.parse(`{"${key}":{"method":"elicitation/create"}}`);
    inputRequests[key].params = form;
    const asks = { resultType: "input_required", inputRequests, requestState: "s" };
    const table: Table = {
      ...NEWEST,
      "tools/list": { result: { tools: [TOOL] } },
      "tools/call": [{ result: asks }, { echo: "inputResponses" }],
    };
    await using scene = await sceneOf({ srv: table }, "2026-07-28");
    const { pml } = scene;
    const call = { name: "call", arguments: { tool: "srv:go", arguments: {} } };
    const request = await pml.request("tools/call", call);
    const { requestState } = request.result ?? {};
    assert.match(JSON.stringify(request), /Server srv asks: Name\?/);
    const inputResponses = { other: picked("Yes") };
    const answer = await pml.request("tools/call", { ...call, requestState, inputResponses });
    assert.equal(codeOf(answer), "CANCELLED", `${key}: ${textOf(answer)}`);
  }
});

Deno.test("notifications of any name, and endless progress, do not affect a server", async () => {
  const lines = ["constructor", "toString", "__proto__"].map((method) =>
    JSON.stringify({ jsonrpc: "2.0", method, params: {} })
  );
  const progress = (number: string) =>
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,` +
    `"progress":${number},"total":1e400}}`;
  await using scene = await scripted();
  const { ws, pml } = scene;
  const steps = [...lines, progress("1e400"), progress("-1e400"), progress("2")]
    .map((write) => ({ write }));
  const { result } = await pml.request("tools/call", {
    name: "srv__run",
    arguments: { steps },
    _meta: { progressToken: 5 },
  });
  assert.equal(textOf({ result }), "done");
  const told = pml.messages.filter(({ method }) => method === "notifications/progress")
    .map(({ params }) => params);
  assert.deepEqual(told as unknown, [{ progress: 2, progressToken: 5 }]);
  await endWell(ws, pml);
});

Deno.test("a forged end of code is reported as its own error (SE12)", async () => {
  await using scene = await ledgerScene();
  const { ws, pml } = scene;
  const ends: readonly (readonly [type: string, json: string])[] = [
    ["result", '{"kind":"thrown","name":{"toString":1},"message":"x"}'],
    ["result", '{"kind":"thrown","name":"x","message":[[{"toString":1}]]}'],
    ["result", '{"kind":"output","message":{"toString":1}}'],
    ["result", "{}"],
    ["failed", '{"name":{"toString":1},"message":{"toString":1},"at":{"toString":1}}'],
    ["failed", '{"message":"Requires constructor access"}'],
    ["text", "x"],
  ];
  for (const [type, json] of ends) {
    const answer = await runCode(
      pml,
      `const post = MessagePort.prototype.postMessage;
      MessagePort.prototype.postMessage = function (message, ...more) {
        if (message.type !== "result") return post.call(this, message, ...more);
        post.call(this, { ...message, type: ${JSON.stringify(type)}, json: ${
        JSON.stringify(json)
      } });
      };
      return 1;`,
    );
    assert.doesNotMatch(JSON.stringify(answer), OURS, `${type} ${json}`);
    assert.equal(answer.error, undefined, `${type} ${json}`);
    assert.equal(answer.result?.isError as unknown, true, `${type} ${json}`);
    assert.equal(await valueOf(pml, "return 1"), "1");
  }
  await assertServes(pml);
  await endWell(ws, pml);
});

Deno.test("an attached client passes on a resource whose address is not a string", async () => {
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws);
  for (const era of ERAS) {
    await using pml = new RawStdio(ws, { era });
    await pml.open();
    for (const method of ["resources/subscribe", "resources/unsubscribe"]) {
      assert.doesNotMatch(
        JSON.stringify(await pml.request(method, { uri: { toString: 1 } })),
        OURS,
      );
    }
    await assertServes(pml);
    assert.doesNotMatch(pml.stderr, /Serving on stdio/, "it is no window");
    assert.equal((await pml.close()).code, 0);
  }
  assert.doesNotMatch(served.stderr, OURS);
});

Deno.test("a client's file of a clone with odd values stops no command (GW7)", async () => {
  const odd = { toString: 1 };
  const servers = {
    kind: { type: odd, command: "x" },
    program: { command: odd, args: [odd], env: { A: odd } },
    folder: { command: "x", cwd: odd, disabled: odd },
    page: { url: odd, headers: { A: odd } },
    pml: { command: odd, args: odd },
    constructor: { command: "\ud800" },
  };
  const text = JSON.stringify({ mcpServers: servers });
  await using ws = await makeAttackWorkspace({
    files: { ".mcp.json": text, ".cursor/mcp.json": text },
  });
  const commands = [["doctor"], ["import"], ["import", "--json"], ["init", "--yes"], ["tools"]];
  for (const args of [...commands, ["init", "--client", "cursor", "--yes"]]) {
    const { stdout, stderr } = await runPml(ws, args);
    assert.doesNotMatch(stdout + stderr, OURS, args.join(" "));
    assert.doesNotMatch(stdout + stderr, /must be of type/, args.join(" "));
  }
  const { stdout } = await runPml(ws, ["import"]);
  assert.match(stdout, /kind[^]*of this type/);
});

/** Serves tables over stdio, to a client that can ask the user. */
async function sceneOf(tables: Readonly<Record<string, Table>>, era = ERAS[0]): Promise<Scene> {
  return await makeScene({
    era,
    capabilities: CAN_ASK,
    files: filesOf(tables),
    pml: {
      version: 1,
      permissions: { allow: Object.keys(tables).map((name) => `${name}:*`) },
      mcpServers: definitions(tables),
    },
  });
}

/** Creates a scene with the server that runs the script in the arguments of its calls. */
async function scripted(): Promise<Scene> {
  const script = repoFile("tests/kit/script_server.ts");
  const args = ["run", "-A", "--no-config", "--quiet", script];
  return await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["srv:*", "filesystem:*"] },
      mcpServers: { srv: { command: process.execPath, args } },
    },
  });
}
