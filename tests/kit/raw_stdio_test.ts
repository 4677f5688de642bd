import assert from "node:assert/strict";
import { ERAS } from "./json_rpc.ts";
import { type Command, denoCommand } from "./pml_command.ts";
import { RawStdio } from "./raw_stdio.ts";
import { makeWorkspace } from "./workspace.ts";

const ECHO = denoCommand("tests/kit/echo_server.ts");

/** Returns a server that prints only these lines. */
function says(...lines: string[]): Command {
  return [
    "sh",
    "-c",
    'for line in "$@"; do printf "$line\\n"; done; cat >/dev/null',
    "sh",
    ...lines,
  ];
}

for (const era of ERAS) {
  Deno.test(`RawStdio opens, lists, calls and closes stdin in ${era}`, async () => {
    await using ws = await makeWorkspace();
    await using raw = new RawStdio(ws, { era, command: ECHO });
    const opened = await raw.open();
    assert.equal(opened.error, undefined, JSON.stringify(opened));
    const listed = await raw.request("tools/list", {});
    assert.equal(listed.result?.tools?.[0]?.name, "echo");
    const called = await raw.callTool("echo", { a: 1 });
    assert.equal(called.result?.content?.[0]?.text, '{"a":1}');
    raw.assertAnswered();
    const ended = await raw.close();
    assert.equal(ended.code, 0, raw.stderr);
    await raw.watch.assertNothingLeft();
    await ws.assertCanaries();
  });

  Deno.test(`RawStdio answers requests of the server in ${era}`, async () => {
    await using ws = await makeWorkspace();
    const asked: unknown[] = [];
    await using raw = new RawStdio(ws, {
      era,
      command: ECHO,
      answer: (method, params) => {
        asked.push([method, params.message]);
        return { action: "accept", content: { answer: "Yes" } };
      },
    });
    await raw.open();
    const called = await raw.callTool("ask");
    assert.match(String(called.result?.content?.[0]?.text), /"answer":"Yes"/);
    assert.deepEqual(asked, [["elicitation/create", "Sure?"]]);
    await raw.close();
  });
}

Deno.test("RawStdio reads a frame in pieces and keeps every byte", async () => {
  await using ws = await makeWorkspace();
  const answer = '{"jsonrpc":"2.0","id":1,"result":{}}';
  await using raw = new RawStdio(ws, {
    command: ["sh", "-c", `read a; printf '${answer.slice(0, 9)}'; printf '${answer.slice(9)}\\n'`],
  });
  assert.deepEqual((await raw.request("ping")).result, {});
  await raw.close();
  assert.equal(raw.stdout, `${answer}\n`);
});

Deno.test("RawStdio fails on output other than one JSON-RPC message in each line", async () => {
  const bad: [string, RegExp][] = [
    ["hello", /not JSON/],
    ["", /not JSON/],
    ["[]", /\[\]/],
    ['{"id":1,"result":{}}', /not JSON-RPC/],
    ['{"jsonrpc":"2.0","id":1}', /one request nor one/],
    ['{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', /neither one/],
    ['{"jsonrpc":"2.0","result":{}}', /without an id/],
    ['{"jsonrpc":"2.0","id":7,"result":{}}', /without a request/],
  ];
  await using ws = await makeWorkspace();
  for (const [line, error] of bad) {
    await using raw = new RawStdio(ws, { command: says(line) });
    await assert.rejects(raw.close(), error, line);
  }
});

Deno.test("RawStdio fails on a second answer to one id, and on an incomplete last line", async () => {
  await using ws = await makeWorkspace();
  const answer = '{"jsonrpc":"2.0","id":1,"result":{}}';
  await using twice = new RawStdio(ws, { command: says(answer, answer) });
  await twice.request("ping");
  await assert.rejects(twice.close(), /answered twice/);
  await using half = new RawStdio(ws, { command: ["sh", "-c", "printf '{'"] });
  await assert.rejects(half.close(), /incomplete line/);
});

Deno.test("RawStdio reports a request without an answer", async () => {
  await using ws = await makeWorkspace();
  await using silent = new RawStdio(ws, { command: ["sh", "-c", "cat >/dev/null"] });
  await assert.rejects(silent.request("ping", {}, { ms: 50 }), /no answer to 1 ping/);
  assert.throws(() => silent.assertAnswered(), /never answered/);
  await using dead = new RawStdio(ws, { command: ["sh", "-c", "echo why >&2"] });
  await assert.rejects(dead.request("ping"), /1 ping: .*why/);
});

Deno.test("RawStdio kills, and returns how the process ended", async () => {
  await using ws = await makeWorkspace();
  await using raw = new RawStdio(ws, { command: ["sleep", "600"] });
  assert.equal((await raw.kill("SIGTERM")).signal, "SIGTERM");
  await raw.watch.assertNothingLeft();
});
