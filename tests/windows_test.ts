/**
 * One `pml serve` for many windows: each `pml stdio` of the same user and workspace attaches to it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { journalOf, ofKind, textOf } from "./attacks/oracles.ts";
import { toldCode } from "./attacks/evil_servers.ts";
import { makeAttackWorkspace, SLOW } from "./attacks/stage.ts";
import { scriptServer } from "./script_scene.ts";
import { connect } from "./kit/client.ts";
import { ERAS, type Message } from "./kit/json_rpc.ts";
import { servePml } from "./kit/pml_serve.ts";
import { treeOf } from "./kit/procwatch.ts";
import { RawStdio, type RawStdioOptions } from "./kit/raw_stdio.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { VERSION } from "../src/core/version.ts";
import { residentBytes } from "../src/sandbox/process.ts";
import { connectToSocket, LineExchange } from "../src/transport/attach/private_socket.ts";
import { hashVariable, keyOf, socketPathOf } from "../src/transport/attach/window_socket.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

/** Windows attach to another process. Those that are killed or measured are processes, too. */
const OWN_PROCESS = { ownProcess: true } as const;

const READ = { tool: "filesystem:read_file", arguments: { path: "good.txt" } };
const WAIT = { tool: "slow:wait", arguments: { path: "go.txt" } };

async function windowOf(ws: Workspace, options: RawStdioOptions = {}): Promise<RawStdio> {
  const here = new RawStdio(ws, options);
  await here.open();
  return here;
}

function read(here: RawStdio): Promise<Message> {
  return here.callTool("call", READ);
}

/** Waits until this number of calls has started. */
async function begun(ws: Workspace, count: number): Promise<void> {
  await until(async () => ofKind(await journalOf(ws), "start").length === count);
}

/** Returns whether a process has no children, so that it runs no tool itself. */
async function isEmpty({ pid }: { readonly pid: number }): Promise<boolean> {
  return (await treeOf(pid)).length === 1;
}

/** Returns the number of processes of a workspace that the running PML did not start. */
async function othersThan(
  { pid }: { readonly pid: number },
  { watch }: RawStdio,
): Promise<number> {
  // The running PML may start a process before or after the list of all processes is read.
  const before = await treeOf(pid);
  const living = await watch.living();
  const started = [...before, ...await treeOf(pid)].map((item) => item.pid);
  return living.filter((item) => !started.includes(item.pid)).length;
}

Deno.test("the running PML serves windows of both revisions", async () => {
  await using ws = await makeAttackWorkspace();
  await using served = await servePml(ws, [], OWN_PROCESS);
  for (const era of ERAS) {
    await using here = await windowOf(ws, { era });
    assert.match(textOf(await read(here)), /./);
    assert.equal(await othersThan(served, here), 0, "the window started a process");
    assert.equal((await here.close()).code, 0);
  }
  assert.ok(!await isEmpty(served));
});

Deno.test("a window works alone with another environment or workspace, or without a running PML", async () => {
  const mcpServers = { one: { command: "none", env: { KEY: "${ONE_KEY}" } } };
  const pml = { version: 1, permissions: { allow: ["filesystem:*"] }, mcpServers };
  await using ws = await makeAttackWorkspace({
    pml,
    files: { "other/.pml.json": '{"version":1}' },
  });
  const served = await servePml(ws, [], OWN_PROCESS);
  const others: readonly RawStdioOptions[] = [
    { env: { PML_LOG_LEVEL: "debug" } },
    { env: { PML_ANYTHING: "x" } },
    { env: { ONE_KEY: "another" } },
    { env: { HTTPS_PROXY: "http://127.0.0.1:9" } },
    { cwd: ws.file("other") },
  ];
  for (const options of others) {
    await using here = await windowOf(ws, options);
    await read(here);
    assert.match(here.stderr, /Serving on stdio/, JSON.stringify(options));
  }
  await using same = await windowOf(ws);
  await read(same);
  assert.doesNotMatch(same.stderr, /Serving/);
  await Deno.chmod(join(ws.home, "windows"), 0o755);
  await using careful = await windowOf(ws);
  await read(careful);
  assert.match(careful.stderr, /Serving on stdio/, "others could reach the socket");
  served.kill("SIGKILL");
  await served.ended;
  // Its socket still exists.
  await using last = await windowOf(ws);
  assert.match(textOf(await read(last)), /./);
  assert.match(last.stderr, /Serving on stdio/);
  await using again = await servePml(ws, [], OWN_PROCESS);
  await using attached = await windowOf(ws);
  await read(attached);
  assert.doesNotMatch(attached.stderr, /Serving/);
  assert.ok(!await isEmpty(again));
});

for (const era of ERAS) {
  Deno.test(`a window works alone after the running PML was killed, and loses nothing (${era})`, async () => {
    await using ws = await makeAttackWorkspace(SLOW);
    const served = await servePml(ws, [], OWN_PROCESS);
    await using here = await windowOf(ws, { era });
    await read(here);
    const running = here.callTool("call", WAIT);
    await begun(ws, 2);
    served.kill("SIGKILL");
    // Requests in this time have different sizes, and reach the window in several chunks.
    const said = Array.from({ length: 40 }, (_, at) => 1 + at * 53 % 97).map(async (size, at) => {
      await delay(5 * at);
      const missing = `${"x".repeat(size)}.txt`;
      const answer = await here.callTool("call", { ...READ, arguments: { path: missing } });
      // A forwarded request may have run.
      if (toldCode(answer) === "UPSTREAM_DOWN") return;
      assert.match(textOf(answer), new RegExp(`"${missing}"`));
    });
    const { result } = await running;
    assert.equal(toldCode({ result } as Message), "UPSTREAM_DOWN");
    await Promise.all(said);
    const { error } = result?.structuredContent as { error: { detail: unknown } };
    assert.deepEqual(error.detail, { may_have_run: true });
    assert.match(textOf(await read(here)), /./);
    assert.match(here.stderr, /Serving on stdio/);
    assert.equal((await here.close()).code, 0);
    await served.ended;
  });

  Deno.test(`calls of a window end with the window (${era})`, async () => {
    await using ws = await makeAttackWorkspace(SLOW);
    await using _served = await servePml(ws, [], OWN_PROCESS);
    await using here = await windowOf(ws, { ...OWN_PROCESS, era });
    here.callTool("call", WAIT);
    await begun(ws, 1);
    await here.kill("SIGKILL");
    await until(async () =>
      ofKind(await journalOf(ws), "end").some(({ code }) => code === "CANCELLED")
    );
  });
}

Deno.test("a call that waits for an answer of a window ends with the window", async () => {
  const mcpServers = { s: scriptServer() };
  const pml = { version: 1, permissions: { allow: ["s:*"] }, mcpServers };
  await using ws = await makeAttackWorkspace({ files: { ledger: "" }, pml });
  await using _served = await servePml(ws, [], OWN_PROCESS);
  const capabilities = { elicitation: { form: {} } };
  await using here = await windowOf(ws, { ...OWN_PROCESS, era: "2026-07-28", capabilities });
  const steps = [{
    ask: { method: "elicitation/create", params: { message: "Who?", requestedSchema: {} } },
  }];
  const question = await here.callTool("call", { tool: "s:run", arguments: { steps } });
  assert.equal(question.result?.resultType as unknown, "input_required", JSON.stringify(question));
  await here.kill("SIGKILL");
  await until(async () =>
    ofKind(await journalOf(ws), "end").some(({ code }) => code === "CANCELLED")
  );
});

Deno.test("the answer to a question of one window is useless in another", async () => {
  const pml = { version: 1, permissions: { ask: ["filesystem:read_file"] } };
  await using ws = await makeAttackWorkspace({ pml });
  await using _served = await servePml(ws, [], OWN_PROCESS);
  const capabilities = { elicitation: { form: {} } };
  const options = { era: "2026-07-28", capabilities } as const;
  await using one = await windowOf(ws, options);
  await using other = await windowOf(ws, options);
  const asked = (await read(one)).result as unknown as {
    readonly resultType: string;
    readonly requestState: string;
    readonly inputRequests: Record<string, unknown>;
  };
  assert.equal(asked.resultType, "input_required");
  const yes = { action: "accept", content: { answer: "Yes" } };
  const inputResponses = Object.fromEntries(
    Object.keys(asked.inputRequests).map((key) => [key, yes]),
  );
  const params = {
    name: "call",
    arguments: READ,
    requestState: asked.requestState,
    inputResponses,
  };
  const stolen = await other.request("tools/call", params);
  assert.notEqual(stolen.result?.resultType, "complete", JSON.stringify(stolen));
  const own = await one.request("tools/call", params);
  assert.equal(own.result?.resultType, "complete", JSON.stringify(own));
});

Deno.test("a window works alone when the configuration names another variable", async () => {
  const pml = { version: 1, permissions: { allow: ["filesystem:*"] } };
  await using ws = await makeAttackWorkspace({ pml });
  await using _served = await servePml(ws, [], OWN_PROCESS);
  await using here = await windowOf(ws);
  await read(here);
  assert.doesNotMatch(here.stderr, /Serving/);
  const one = { command: "none", args: [], env: { KEY: "${ANOTHER_KEY}" } };
  const config = JSON.stringify({ mcpServers: { one } });
  await Deno.writeTextFile(join(ws.home, "config.yaml"), config);
  await until(() => here.stderr.includes("Serving on stdio"));
  assert.match(textOf(await read(here)), /./);
});

Deno.test("a window that connects while the configuration names another variable is compared again", async () => {
  const pml = { version: 1, permissions: { allow: ["filesystem:*"] } };
  await using ws = await makeAttackWorkspace({ pml });
  await using _served = await servePml(ws, [], OWN_PROCESS);
  await using here = await windowOf(ws);
  await read(here);
  const path = socketPathOf(ws.home, ws.path);
  const socket = await connectToSocket(path);
  assert(socket);
  const exchange = new LineExchange(socket);
  exchange.send({ version: VERSION, cwd: ws.path, key: keyOf(path) ?? "" });
  const { nonce, names } = await exchange.next() as { nonce: string; names: string[] };
  const one = { command: "none", args: [], env: { KEY: "${ANOTHER_KEY}" } };
  const config = JSON.stringify({ mcpServers: { one } });
  await Deno.writeTextFile(join(ws.home, "config.yaml"), config);
  await until(() => here.stderr.includes("Serving on stdio"));
  const env: Readonly<Record<string, string>> = ws.env;
  const own = Object.keys(env).filter((name) => name.startsWith("PML_"));
  const values = Object.fromEntries(
    [...names, ...own].map((name) => [name, hashVariable(nonce, env[name])]),
  );
  exchange.send({ own, values });
  assert.deepEqual(Object.keys(await exchange.next() as object), ["no"]);
  socket.destroy();
});

Deno.test("a confined program that can open the socket, but reads no file of the home, cannot attach", async () => {
  const pml = { version: 1, permissions: { allow: ["filesystem:*"] } };
  await using ws = await makeAttackWorkspace({ pml });
  await using _served = await servePml(ws, [], OWN_PROCESS);
  const path = socketPathOf(ws.home, ws.path);
  for (const key of [undefined, "", "x".repeat(43)]) {
    for (const hello of [{ version: VERSION, cwd: ws.path }, { asks: "url" }]) {
      const socket = await connectToSocket(path);
      assert(socket);
      const exchange = new LineExchange(socket);
      exchange.send({ ...hello, key });
      assert.deepEqual(Object.keys(await exchange.next() as object), ["no"]);
      socket.destroy();
    }
  }
  assert.equal(((await Deno.stat(`${path}.json`)).mode ?? 0o777) & 0o077, 0);
});

Deno.test("many windows share servers, which end when no call uses them any longer", async () => {
  const [windows, servers, killed] = [64, 13, 8];
  const names = [...Array(servers).keys()].map((at) => `s${at}`);
  const server = { command: Deno.execPath(), args: ["run", "-A", "tiny.js"] };
  const pml = {
    version: 1,
    permissions: { allow: names.map((name) => `${name}:*`) },
    mcpServers: Object.fromEntries(names.map((name) => [name, server])),
  };
  const files = { "tiny.js": tinyServer("params.arguments.said") };
  await using ws = await makeAttackWorkspace({ pml, files, limits: { idle_ms: 3_000 } });
  const sets = 'toolsets:\n  few: ["s0:*"]\nclient_toolsets:\n  small: few\n';
  await Deno.writeTextFile(join(ws.home, "config.yaml"), sets, { append: true });
  await using served = await servePml(ws, [], OWN_PROCESS);
  const all: RawStdio[] = [];
  const running = async () =>
    (await treeOf(served.pid)).filter(({ command }) => command.includes("tiny.js")).length;
  try {
    all.push(...await Promise.all(Array.from({ length: killed }, () => windowOf(ws, OWN_PROCESS))));
    // Some at a time, as windows open on a machine with few cores.
    while (all.length < windows) {
      all.push(...await Promise.all([...Array(8).keys()].map(() => windowOf(ws))));
    }
    await using small = await connect(ws, { clientName: "small" });
    assert.equal(await running(), 0, "before the first call");
    await Promise.all(all.flatMap((here, at) =>
      names.map(async (name) => {
        const args = { tool: `${name}:tell`, arguments: { said: `${name} ${at}` } };
        assert.equal(textOf(await here.callTool("call", args)), `"${name} ${at}"`);
      })
    ));
    // A process that is starting is counted twice for a moment.
    await until(async () => await running() <= servers);
    const told = async (name: string) => {
      const args = { tool: `${name}:tell`, arguments: { said: "small" } };
      return JSON.stringify(await small.client.callTool({ name: "call", arguments: args }));
    };
    assert.match(await told("s0"), /small/);
    assert.match(await told("s1"), /PERMISSION_DENIED/);
    const search = { name: "search", arguments: { query: "tell" } };
    const found = JSON.stringify(await small.client.callTool(search));
    assert.match(found, /s0:tell/);
    assert.doesNotMatch(found, /s1:tell/);
    const [first, ...others] = all.slice(0, killed);
    assert.ok(first !== undefined);
    for (const here of [first, ...others]) assert.ok(await isEmpty(here));
    assert.equal(await othersThan(served, first), killed, "a window started a process");
    await Promise.all([first, ...others].map((here) => here.kill("SIGKILL")));
    await until(async () => await running() === 0);
  } finally {
    await Promise.all(all.map((here) => here[Symbol.asyncDispose]()));
  }
});

Deno.test("a client of a window that reads late gets all messages; too many end only its own window", async () => {
  const server = { command: Deno.execPath(), args: ["run", "-A", "tiny.js"] };
  const pml = { version: 1, permissions: { allow: ["big:*"] }, mcpServers: { big: server } };
  const files = { "tiny.js": tinyServer("'x'.repeat(1_000_000)") };
  await using ws = await makeAttackWorkspace({
    pml,
    files,
    limits: { queued_bytes: 4_000_000, inline_bytes: 0 },
  });
  await using served = await servePml(ws, [], OWN_PROCESS);
  let held: PromiseWithResolvers<void> | undefined;
  await using here = await windowOf(ws, { ...OWN_PROCESS, reads: () => held?.promise });
  await using other = await windowOf(ws);
  const big = { tool: "big:tell" };
  await here.callTool("call", big);
  const before = residentBytes(here.pid);
  const late = async (count: number) => {
    held = Promise.withResolvers<void>();
    const all = ofKind(await journalOf(ws), "end").length + count;
    const calls = [...Array(count).keys()].map(() => here.callTool("call", big));
    await until(async () => ofKind(await journalOf(ws), "end").length >= all);
    const grown = (residentBytes(here.pid) - before) / 1e6;
    assert.ok(grown < 60, `${grown} MB wait in the window`);
    held.resolve();
    held = undefined;
    return (await Promise.all(calls)).map(textOf);
  };
  for (const text of await late(12)) assert.ok(text.length > 1_000_000, text.slice(0, 200));
  assert.doesNotMatch(here.stderr, /Serving/);
  // Four results of the largest size may wait for all windows.
  const texts = await late(60);
  const messages = texts.filter((text) => text.length < 1_000);
  assert.ok(
    messages.length > 0 && messages.length < 60,
    `${messages.length} of them were not given`,
  );
  for (const text of messages) assert.match(text, /UPSTREAM_DOWN.*\n.*may have run/);
  await until(() => /Serving on stdio/.test(here.stderr));
  assert.ok(textOf(await other.callTool("call", big)).length > 1_000_000);
  assert.doesNotMatch(other.stderr, /Serving/);
  assert.ok(!await isEmpty(served));
});

for (const era of ERAS) {
  Deno.test(`a PML that ends waits for the calls of its windows (${era})`, async () => {
    await using ws = await makeAttackWorkspace(SLOW);
    const served = await servePml(ws, [], OWN_PROCESS);
    await using here = await windowOf(ws, { era });
    if (era === "2026-07-28") {
      const notifications = { toolsListChanged: true };
      here.begin("subscriptions/listen", { notifications }).answer.catch(() => {}); // ends with it
    }
    await read(here);
    const running = here.callTool("call", WAIT);
    await begun(ws, 2);
    served.kill("SIGTERM");
    // It accepts no more windows.
    const socket = basename(socketPathOf(ws.home, ws.path));
    const names = () => [...Deno.readDirSync(join(ws.home, "windows"))].map(({ name }) => name);
    await until(() => !names().includes(socket));
    // A request in this time waits for the window's own PML, and runs there once.
    const later = read(here);
    // Without running calls PML would end sooner than this.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await Deno.writeTextFile(ws.file("go.txt"), "done");
    assert.match(textOf(await running), /done/);
    assert.equal(textOf(await later), textOf(await read(here)));
    assert.equal(await served.ended, 0);
    assert.ok(names().every((name) => name.endsWith(".lock")));
    assert.match(here.stderr, /Serving on stdio/);
    assert.equal(ofKind(await journalOf(ws), "start").length, 4, "nothing ran twice");
    assert.equal((await here.close()).code, 0);
  });
}

/** A server whose prompt is answered with a long error. */
const FAILS = `
let rest = "";
const send = (said) => console.log(JSON.stringify({ jsonrpc: "2.0", ...said }));
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
    const { protocolVersion } = params ?? {};
    const serverInfo = { name: "f", version: "1" };
    const result = {
      initialize: { protocolVersion, capabilities: { prompts: {} }, serverInfo },
      "prompts/list": { prompts: [{ name: "long" }] },
    }[method];
    if (result !== undefined) send({ id, result });
    else if (id !== undefined) {
      send({ id, error: { code: -32050, message: "long", data: "x".repeat(100_000) } });
    }
  }
}`;

Deno.test("a long answer with any id is delivered once", async () => {
  const server = { command: Deno.execPath(), args: ["run", "-A", "tiny.js"] };
  const mcpServers = { big: server, fails: { ...server, args: ["run", "-A", "fails.js"] } };
  const pml = { version: 1, permissions: { allow: ["big:*", "filesystem:*"] }, mcpServers };
  const files = { "tiny.js": tinyServer("'x'.repeat(100_000)"), "fails.js": FAILS };
  await using ws = await makeAttackWorkspace({ pml, files, limits: { inline_bytes: 0 } });
  await using served = await servePml(ws, [], OWN_PROCESS);
  await using here = new RawStdio(ws);
  // After this notification the SDK handles all messages.
  await here.notify("notifications/odd");
  await here.open();
  const params = { name: "call", arguments: { tool: "big:tell" } };
  for (const id of ["i".repeat(3_000), '\u00e4"\\'.repeat(400), '","id":1}', 70]) {
    assert.ok(textOf(await here.request("tools/call", params, { id })).length > 100_000);
  }
  await until(async () => {
    const { result } = await here.request("prompts/list");
    return JSON.stringify(result).includes("fails__long");
  });
  const { error } = await here.request("prompts/get", { name: "fails__long" });
  assert.ok(JSON.stringify(error).length > 100_000);
  served.kill("SIGKILL");
  await until(() => here.stderr.includes("Serving on stdio"));
  assert.match(textOf(await read(here)), /./);
  assert.equal((await here.close()).code, 0);
  here.assertAnswered();
});
