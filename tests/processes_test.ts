/**
 * Running PMLs as `pml page` sees them: their states, calls and open questions, and actions of the
 * user on them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { CallRow, ProcessState, Reply, Waiting } from "../src/control/api.ts";
import { ControlConnection } from "../src/control/control_connection.ts";
import { ProcessClients } from "../src/control/process_clients.ts";
import { processFolder, readEntries, socketOf } from "../src/control/process_folder.ts";
import { connectToSocket } from "../src/transport/attach/private_socket.ts";
import { greeting, PML } from "./cli_greeter.ts";
import { connect, type Connection, type ConnectOptions, type ElicitResult } from "./kit/client.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { connectHttp, servePml } from "./kit/pml_serve.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace, writeFiles } from "./kit/workspace.ts";

const WRITE = {
  name: "call",
  arguments: { tool: "filesystem:write_file", arguments: { path: "a.txt", content: "b" } },
};
const LIST = {
  name: "call",
  arguments: { tool: "filesystem:list_directory", arguments: { path: "." } },
};

/** Follows the processes of a home, and keeps their reports. */
async function follow(home: string) {
  const calls: CallRow[] = [];
  const ended: string[] = [];
  const clients = new ProcessClients(home, {
    onState: () => {},
    onCall: (call) => void calls.push(call),
    onEnd: (id) => void ended.push(id),
  });
  await clients.start();
  return {
    ...{ clients, calls, ended },
    [Symbol.asyncDispose]: () => clients[Symbol.asyncDispose](),
  };
}

/** Waits for a state of the only process. */
async function stateWith(
  clients: ProcessClients,
  isWanted: (state: ProcessState) => boolean,
): Promise<ProcessState> {
  await until(() => clients.states.some(isWanted));
  return clients.states.find(isWanted) as ProcessState;
}

/** Connects a client, and waits until PML is shown. */
async function shown(ws: Workspace, options: ConnectOptions = {}) {
  const pml = await connect(ws, options);
  assert.deepEqual(await readEntries(ws.home), [], "a client still waits for its first answer");
  await pml.client.listTools();
  return pml;
}

/** A client whose form stays open until it is withdrawn. */
function waiting() {
  const { promise, resolve } = Promise.withResolvers<ElicitResult>();
  return {
    count: 0,
    elicit() {
      this.count++;
      return promise;
    },
    close: resolve,
  };
}

Deno.test("a running PML shows its client, servers and calls", async () => {
  await using ws = await makeWorkspace();
  await using pml = await shown(ws, { clientName: "the-client" });
  await using page = await follow(ws.home);
  const state = await stateWith(page.clients, ({ clients }) => clients.length > 0);
  assert.deepEqual(
    [state.command, state.workspace, state.clients[0]?.name, state.clients[0]?.canAsk],
    ["stdio", ws.path, "the-client", false],
  );
  assert.ok(state.servers.some(({ name }) => name === "filesystem"));
  await pml.client.callTool(LIST);
  await until(() => page.calls.some(({ state }) => state === "done"));
  assert.deepEqual(page.calls.map(({ server, tool, state }) => [server, tool, state]), [
    ["filesystem", "list_directory", "running"],
    ["filesystem", "list_directory", "done"],
  ]);
  assert.ok((page.calls[1]?.resultBytes ?? 0) > 0);
  await stateWith(page.clients, ({ servers }) => servers.some((one) => one.state === "running"));
  await pml[Symbol.asyncDispose]();
  await until(() => page.ended.length > 0);
  const rest = await Array.fromAsync(Deno.readDir(processFolder(ws.home)));
  assert.deepEqual(rest, [], "its files are removed");
});

Deno.test({
  name: "a running PML takes at most 16 pages, and goes on",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using ws = await makeWorkspace();
    await using pml = await shown(ws);
    await using page = await follow(ws.home);
    const { id } = await stateWith(page.clients, () => true);
    const [{ key = "" } = {}] = await readEntries(ws.home);
    const open: ControlConnection[] = [];
    for (let count = 1; count < 16; count++) open.push(await opened({ ws, id, key }));
    await assert.rejects(opened({ ws, id, key }));
    assert.equal((await page.clients.request(id, "state")).id, id);
    await pml.client.ping();
    for (const connection of open) connection[Symbol.dispose]();
  },
});

Deno.test({
  name: "programs without the key keep no page out, however many connections they open",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using ws = await makeWorkspace();
    await using _ = await shown(ws);
    await until(async () => (await readEntries(ws.home)).length > 0);
    const [{ id = "" } = {}] = await readEntries(ws.home);
    const sockets = await Promise.all(
      Array.from({ length: 20 }, () => connectToSocket(socketOf(ws.home, id))),
    );
    const openOnes = () => sockets.filter((socket) => socket?.destroyed === false).length;
    await until(() => openOnes() <= 16);
    assert.ok(openOnes() >= 14, "the oldest are closed before their time is over");
    await using page = await follow(ws.home);
    assert.equal(page.clients.states[0]?.id, id);
    for (const socket of sockets) socket?.destroy();
  },
});

/** Connects as a page does. Rejects if that is refused. */
async function opened(
  { ws, id, key }: { readonly ws: Workspace; readonly id: string; readonly key: string },
): Promise<ControlConnection> {
  const socket = await connectToSocket(socketOf(ws.home, id));
  assert.ok(socket !== undefined);
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {}); // it may end later
  const connection = new ControlConnection(socket, {
    serve: () => Promise.resolve({}),
    onNotification: () => {},
    onEnd: () => ended.reject(new Error("refused")),
  });
  await Promise.race([connection.request("open", { key }), ended.promise]);
  return connection;
}

Deno.test({
  name: "a program that cannot read the PML home gets nothing through the socket",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using ws = await makeWorkspace();
    await using _ = await shown(ws);
    await until(async () => (await readEntries(ws.home)).length > 0);
    const [entry] = await readEntries(ws.home);
    for (const key of [undefined, "", "x".repeat(64)]) {
      const socket = await connectToSocket(socketOf(ws.home, entry?.id ?? ""));
      assert.ok(socket !== undefined);
      const isEnded = Promise.withResolvers<void>();
      const connection = new ControlConnection(socket, {
        serve: () => Promise.resolve({}),
        onNotification: () => {},
        onEnd: isEnded.resolve,
      });
      if (key !== undefined) connection.request("open", { key }).catch(() => {});
      await assert.rejects(connection.request("state", {}));
      await isEnded.promise;
    }
    await using page = await follow(ws.home);
    const state = await stateWith(page.clients, () => true);
    assert.ok(!JSON.stringify(state).includes(entry?.key ?? ""));
  },
});

for (const era of ERAS) {
  Deno.test(`an answer on the page counts for a question in a client's form (${era})`, async () => {
    await using ws = await makeWorkspace();
    const form = waiting();
    await using pml = await shown(ws, { era, elicit: () => form.elicit() });
    await using page = await follow(ws.home);
    const calling = pml.client.callTool(WRITE);
    const { id, questions } = await stateWith(page.clients, (one) => one.questions.length > 0);
    const [question] = questions;
    assert.ok(question);
    assert.deepEqual([question.server, question.tool], ["filesystem", "write_file"]);
    assert.match(question.text, /a\.txt/);
    await until(() => form.count > 0);
    await until(() => Date.now() - question.askedAt > 300);
    const answer = { question: question.id, reply: "once" } as const;
    assert.deepEqual(await page.clients.answer(id, answer), { done: true });
    assert.equal((await page.clients.answer(id, answer)).done, false);
    // A client of the stateless revision brings its own answer, which is late.
    if (era !== ERAS[0]) form.close({ action: "cancel" });
    assert.notEqual((await calling).isError, true);
    assert.equal(await Deno.readTextFile(ws.file("a.txt")), "b");
    form.close({ action: "cancel" });
  });
}

const GREET = {
  name: "call",
  arguments: { tool: "greeter:greet", arguments: { name: "you" } },
};
const WAIT = { name: "call", arguments: { tool: "greeter:wait", arguments: {} } };

/** Returns the text of a result. */
function textOf(result: Awaited<ReturnType<Connection["client"]["callTool"]>>): string {
  return JSON.stringify(result.content);
}

/** Begins a call, which may fail with the test. */
function begin({ client }: Connection, call: Parameters<Connection["client"]["callTool"]>[0]) {
  const calling = client.callTool(call);
  calling.catch(() => {});
  return calling;
}

/** Returns the question that waits, once a user can have read it. */
async function openQuestion(clients: ProcessClients, isWanted = (_: Waiting) => true) {
  const { id, questions } = await stateWith(clients, (one) => one.questions.some(isWanted));
  const question = questions.find(isWanted) as Waiting;
  await until(() => Date.now() - question.askedAt > 300);
  return {
    question,
    answer: (reply: Reply) => clients.answer(id, { question: question.id, reply }),
  };
}

/** Returns the details of the events of a kind in the journal. */
async function eventsOf(ws: Workspace, kind: string): Promise<readonly Record<string, unknown>[]> {
  const { stdout } = await runPml(ws, ["audit", "--json"]);
  return stdout.split("\n").filter(Boolean).map((line) => JSON.parse(line))
    .filter(({ event }) => event === kind).map(({ about }) => about);
}

Deno.test("answers on the page have the effects that they have in a client, and the journal says where", async () => {
  await using ws = await makeWorkspace();
  const form = waiting();
  await using pml = await shown(ws, { elicit: () => form.elicit() });
  await using page = await follow(ws.home);
  const refused = begin(pml, WRITE);
  const first = await openQuestion(page.clients);
  await first.answer("no");
  assert.match(textOf(await refused), /APPROVAL_DECLINED/);
  const allowed = begin(pml, WRITE);
  const isSecond = ({ id }: Waiting) => id !== first.question.id;
  const { question, answer } = await openQuestion(page.clients, isSecond);
  assert.deepEqual(question.replies.map(({ reply }) => reply).includes("always"), true);
  assert.match(question.replies.find(({ reply }) => reply === "always")?.reach ?? "", /rule/);
  assert.equal((await answer("always")).done, true);
  assert.notEqual((await allowed).isError, true);
  assert.notEqual((await pml.client.callTool(WRITE)).isError, true);
  const makeFolder = { tool: "filesystem:create_directory", arguments: { path: "d" } };
  const making = begin(pml, { name: "call", arguments: makeFolder });
  const third = await openQuestion(page.clients, ({ tool }) => tool !== "write_file");
  assert.equal((await third.answer("session")).done, true);
  assert.notEqual((await making).isError, true, textOf(await making));
  const again = { ...makeFolder, arguments: { path: "e" } };
  const result = await pml.client.callTool({ name: "call", arguments: again });
  assert.notEqual(result.isError, true);
  assert.deepEqual((await eventsOf(ws, "session")).map(({ channel }) => channel), ["page"]);
  assert.deepEqual((await eventsOf(ws, "declined")).map(({ channel }) => channel), ["page"]);
  assert.deepEqual((await eventsOf(ws, "always")).map(({ channel }) => channel), ["page"]);
  form.close({ action: "cancel" });
});

Deno.test("an answer in the client comes first, and the one on the page is late", async () => {
  await using ws = await makeWorkspace();
  const form = waiting();
  await using pml = await shown(ws, { elicit: () => form.elicit() });
  await using page = await follow(ws.home);
  const calling = begin(pml, WRITE);
  const { answer } = await openQuestion(page.clients);
  form.close({ action: "accept", content: { answer: "No" } });
  assert.match(textOf(await calling), /APPROVAL_DECLINED/);
  assert.equal((await answer("once")).done, false);
  await assert.rejects(Deno.stat(ws.file("a.txt")), Deno.errors.NotFound);
});

Deno.test("a client of 2026-07-28 cannot undo a no on the page, and its no undoes a yes there", async () => {
  for (const [onPage, inClient] of [["no", "Yes"], ["once", "No"]] as const) {
    await using ws = await makeWorkspace();
    const form = waiting();
    await using pml = await shown(ws, { era: "2026-07-28", elicit: () => form.elicit() });
    await using page = await follow(ws.home);
    const calling = begin(pml, WRITE);
    const { answer } = await openQuestion(page.clients);
    assert.equal((await answer(onPage)).done, true);
    form.close({ action: "accept", content: { answer: inClient } });
    assert.match(textOf(await calling), /APPROVAL_DECLINED/);
    await assert.rejects(Deno.stat(ws.file("a.txt")), Deno.errors.NotFound);
  }
});

Deno.test("an answer on the page does not cover other arguments that come with its question", async () => {
  await using ws = await makeWorkspace();
  const capabilities = { elicitation: { form: {} } };
  await using pml = new RawStdio(ws, { era: "2026-07-28", capabilities });
  await pml.request("tools/list", {});
  await using page = await follow(ws.home);
  const call = async (path: string, requestState?: unknown) => {
    const own = { tool: "filesystem:write_file", arguments: { path, content: "b" } };
    const inputResponses = { approval: { action: "accept", content: { answer: "Yes" } } };
    const { result } = await pml.request("tools/call", {
      ...{ name: "call", arguments: own },
      ...requestState !== undefined && { requestState, inputResponses },
    });
    return result as Record<string, unknown>;
  };
  const first = await call("a.txt");
  assert.equal(first.resultType, "input_required");
  assert.equal((await (await openQuestion(page.clients)).answer("once")).done, true);
  const other = await call("other.txt", first.requestState);
  assert.equal(other.resultType, "input_required");
  await assert.rejects(Deno.stat(ws.file("other.txt")), Deno.errors.NotFound);
});

Deno.test("an answer on the page does not cover code that changed meanwhile", async () => {
  await using ws = await greeting();
  await Deno.writeTextFile(
    ws.file(".pml.json"),
    JSON.stringify({ ...PML, permissions: { allow: [] } }),
  );
  const form = waiting();
  await using pml = await shown(ws, { elicit: () => form.elicit() });
  await using page = await follow(ws.home);
  const calling = begin(pml, GREET);
  const first = await openQuestion(page.clients);
  const code = await Deno.readTextFile(ws.file("greeter.ts"));
  await Deno.writeTextFile(ws.file("greeter.ts"), code.replace("hello", "changed"));
  await first.answer("once");
  const second = await openQuestion(page.clients, ({ id }) => id !== first.question.id);
  await second.answer("no");
  assert.match(textOf(await calling), /APPROVAL_DECLINED/);
  form.close({ action: "cancel" });
});

Deno.test("with approvals.channel page a call waits for a page that is open, and names the command otherwise", async () => {
  await using ws = await makeWorkspace();
  await writeFiles(ws.home, { "config.yaml": "approvals: { channel: page }\n" });
  const form = waiting();
  await using pml = await shown(ws, { elicit: () => form.elicit() });
  const alone = textOf(await pml.client.callTool(WRITE));
  assert.match(alone, /APPROVAL_REQUIRED/);
  assert.match(alone, /`pml page`/);
  await using page = await follow(ws.home);
  await stateWith(page.clients, () => true);
  // The first state is sent after the page began to follow.
  const calling = begin(pml, {
    name: "call",
    arguments: { tool: "filesystem:write_file", arguments: { path: "c.txt", content: "c" } },
  });
  const { answer } = await openQuestion(page.clients);
  assert.equal((await answer("once")).done, true);
  assert.notEqual((await calling).isError, true);
  assert.deepEqual([form.count, await Deno.readTextFile(ws.file("c.txt"))], [0, "c"]);
});

Deno.test("a call that runs can be cancelled on the page", async () => {
  await using ws = await greeting();
  await using pml = await shown(ws);
  await using page = await follow(ws.home);
  const calling = begin(pml, WAIT);
  const { id, running } = await stateWith(page.clients, (one) => one.running.length > 0);
  assert.deepEqual(await page.clients.cancel(id, running[0]?.id ?? ""), { done: true });
  assert.match(textOf(await calling), /CANCELLED/);
  await until(() => page.calls.some(({ state }) => state === "cancelled"));
  assert.equal((await page.clients.cancel(id, running[0]?.id ?? "")).done, false);
  assert.deepEqual((await eventsOf(ws, "cancelled")).map(({ channel }) => channel), ["page"]);
});

Deno.test("a server can be stopped and started again, and the next call works", async () => {
  await using ws = await makeWorkspace({
    files: { "tiny.mjs": tinyServer("process.pid") },
    pml: {
      permissions: { allow: ["tiny:*"] },
      mcpServers: { tiny: { command: "node", args: ["tiny.mjs"] } },
    },
  });
  await using pml = await shown(ws);
  await using page = await follow(ws.home);
  const { id } = await stateWith(page.clients, () => true);
  const rowIn = ({ servers }: ProcessState) => servers.find(({ name }) => name === "tiny");
  const isIn = (wanted: string) => (state: ProcessState) => rowIn(state)?.state === wanted;
  const tell = async () =>
    textOf(
      await pml.client.callTool({ name: "call", arguments: { tool: "tiny:tell", arguments: {} } }),
    );
  const first = await tell();
  // A state from before the end of the call has no tools yet.
  const running = await stateWith(
    page.clients,
    (state) => isIn("running")(state) && rowIn(state)?.tools !== undefined,
  );
  const row = rowIn(running);
  assert.deepEqual([row?.processes, row?.origin, row?.tools], [1, ".pml.json", 1]);
  if (Deno.build.os === "linux") assert.ok((row?.memoryBytes ?? 0) > 1 << 20);
  assert.deepEqual(await page.clients.server(id, { name: "tiny", action: "stop" }), { done: true });
  await stateWith(page.clients, isIn("idle"));
  const second = await tell();
  assert.notEqual(second, first);
  assert.deepEqual(await page.clients.server(id, { name: "tiny", action: "restart" }), {
    done: true,
  });
  await stateWith(page.clients, isIn("running"));
  assert.notEqual(await tell(), second);
  assert.equal((await page.clients.server(id, { name: "none", action: "stop" })).done, false);
});

Deno.test("two processes of a workspace are both shown, and the end of a killed one is noticed", async () => {
  await using ws = await makeWorkspace();
  await using one = await connect(ws, { ownProcess: true });
  await using second = await connect(ws);
  for (const { client } of [one, second]) await client.listTools();
  await using page = await follow(ws.home);
  await until(() => page.clients.states.length === 2);
  const killed = page.clients.states.find(({ pid }) => pid === one.raw.pid);
  assert.ok(killed !== undefined);
  Deno.kill(one.raw.pid, "SIGKILL");
  await until(() => page.ended.includes(killed.id));
  assert.equal(page.clients.states.length, 1);
  await until(async () => (await readEntries(ws.home)).length === 1);
});

Deno.test({
  name: "a process whose socket has too long a path is known, with the reason",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using ws = await makeWorkspace();
    const home = `${ws.root}/${"h".repeat(90)}`;
    await using _ = await shown(ws, { env: { PML_HOME: home } });
    await using page = await follow(home);
    await until(() => page.clients.hidden.length === 1);
    assert.equal(page.clients.hidden[0]?.workspace, ws.path);
  },
});

Deno.test("the calls of an identity have its name, and it cannot use the socket", async () => {
  const token = "token-of-the-ci-0001";
  await using ws = await makeWorkspace({ files: { "a.txt": "hello" } });
  const permissions = { allow: ["filesystem:list_directory"] };
  const hash = createHash("sha256").update(token).digest("hex");
  const config = { identities: { ci: { token: hash, permissions } } };
  await writeFiles(ws.home, { "config.yaml": JSON.stringify(config) });
  await using served = await servePml(ws);
  await using page = await follow(ws.home);
  const state = await stateWith(page.clients, () => true);
  assert.equal(state.command, "serve");
  await using ci = await connectHttp({ url: served.url, token });
  await ci.client.callTool(LIST);
  // Its PML was opened after the page began to follow.
  await until(async () => {
    await ci.client.callTool(LIST);
    return page.calls.some(({ identity, state }) => identity === "ci" && state === "done");
  });
  // A client without a session is shown while it sends requests.
  await using own = await served.connect({ era: "2026-07-28", clientName: "brief" });
  await own.client.listTools();
  await stateWith(page.clients, ({ clients }) => clients.some(({ name }) => name === "brief"));
});
