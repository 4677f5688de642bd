/**
 * Several processes of one PML: a paused call stays in its process, and the others forward its
 * answers. Without the key no one can do so.
 *
 * @module
 */

import assert from "node:assert/strict";
import { chmod, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type AnswerHead, OtherProcess } from "../src/transport/replicas/_link.ts";
import { Sealer } from "../src/transport/replicas/_sealer.ts";
import { tokenHash } from "../src/transport/http/token.ts";
import { withoutTypeCheck } from "./attacks/code_tools.ts";
import { journalOf, ofKind } from "./attacks/oracles.ts";
import { read } from "./attacks/questions.ts";
import { ledgerOf } from "./full_scene.ts";
import type { ElicitResult } from "./kit/client.ts";
import { connectHttp, servePml, type TestServer } from "./kit/pml_serve.ts";
import { rssOf } from "./kit/procwatch.ts";
import { rawHttp } from "./kit/raw_http.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";
import {
  type Answered,
  callAt,
  CI,
  configure,
  KEY,
  META,
  openIn,
  ranIn,
  RULES,
  sceneryOf,
  twoOf,
  YES,
} from "./replicas_scene.ts";

/** Each process has its own address and its own tickets. */
const OWN_PROCESS = { ownProcess: true } as const;

/** The error of an answer to a call that no longer exists. */
const OVER = /-32602[^]*is over\. [^]*"may_have_run":true/;
/** The client's answer after its user answered the question of the server. */
const NAME = { action: "accept", content: { name: "Ada" } };
const GONE = /UPSTREAM_DOWN[^]*"may_have_run":true/;

interface Waiting {
  readonly requestState: string;
  readonly inputResponses: Readonly<Record<string, unknown>>;
}

/** Returns the state of a paused call, and an answer to all of its questions. */
function waiting({ result, text }: Answered, answer: unknown = NAME): Waiting {
  const { requestState = "", inputRequests = {} } = result ?? {};
  assert.match(requestState, /^run-[0-9a-f]{32}\./, text);
  const keys = Object.keys(inputRequests);
  return { requestState, inputResponses: Object.fromEntries(keys.map((key) => [key, answer])) };
}

/** Starts a call whose server asks the user. */
async function askedBy(at: Pick<TestServer, "url" | "token">): Promise<Waiting> {
  return waiting(await callAt(at, "asks:ask_name"));
}

/** Returns the address file of the only process. */
async function registered(ws: Workspace): Promise<string> {
  const [name = ""] = await readdir(join(ws.home, "replicas"));
  return join(ws.home, "replicas", name);
}

/** Returns the address of the process that did not write this file. */
async function addressBeside(file: string): Promise<string> {
  const folder = dirname(file);
  const [name = ""] = (await readdir(folder)).filter((name) => !file.endsWith(name));
  return JSON.parse(await readFile(join(folder, name), "utf8")).address;
}

Deno.test("a question of a server is answered through another process, and its call runs once", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const { one, two } = both;
  const asked = await askedBy(one);
  const stolen = await callAt({ ...two, url: two.url, token: CI }, "asks:ask_name", asked);
  assert.match(stolen.text, /Cannot go on/);
  const said = await callAt(two, "asks:ask_name", asked);
  assert.match(said.text, /Ada/);
  const calls = (await ledgerOf(ws, "asks")).filter((line) => line.startsWith("call ask_name"));
  assert.equal(calls.length, 1);
  const again = await callAt(two, "asks:ask_name", asked);
  assert.match(again.text, OVER);
});

Deno.test("the error of an answer after a restart without a sealing key reports that its call may have run", async () => {
  await using ws = await sceneryOf({ config: { serve: undefined } });
  const one = await servePml(ws, [], OWN_PROCESS);
  const { result } = await callAt(one, "asks:ask_name");
  const requestState = `${result?.requestState}`;
  one.kill("SIGKILL");
  await one.ended;
  await using two = await servePml(ws, [], OWN_PROCESS);
  const said = await callAt(two, "asks:ask_name", { requestState, inputResponses: {} });
  assert.match(said.text, OVER);
});

Deno.test("a paused call in a killed process fails with UPSTREAM_DOWN and may_have_run", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const { one, two } = both;
  const asked = await askedBy(one);
  one.kill("SIGKILL");
  await one.ended;
  const said = await callAt(two, "asks:ask_name", asked);
  assert.match(said.text, GONE);
  // A process that ended normally has left no address either.
  await using three = await servePml(ws, [], OWN_PROCESS);
  const other = await askedBy(three);
  three.kill("SIGTERM");
  await three.ended;
  assert.match((await callAt(two, "asks:ask_name", other)).text, GONE);
});

Deno.test("a forwarded call whose process is killed fails with may_have_run, and ran once", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const { one, two } = both;
  const code = withoutTypeCheck(
    `return await mcp.note.add_slowly({ text: "a", path: "never.txt" });`,
  );
  const first = await callAt(one, "execute_code", { code });
  const asked = waiting(first, YES.approval);
  const answer = callAt(two, "execute_code", { code, ...asked });
  const running = async () => (await openIn(ws)).filter((tool) => tool === "note:add_slowly");
  await until(async () => (await ranIn(ws)).length === 1 && (await running()).length === 1);
  one.kill("SIGKILL");
  assert.match((await answer).text, GONE);
  assert.match((await callAt(two, "execute_code", { code, ...asked })).text, GONE);
  assert.deepEqual(await ranIn(ws), ["a"]);
  // The journal contains the call that asked, with its end, and the one that ran.
  assert.equal((await running()).length, 1);
});

Deno.test("a session continues through another process, and ends with its own", async () => {
  await using ws = await sceneryOf();
  await using both = await twoOf(ws);
  const { one, two } = both;
  await using client = await one.connect();
  const id = client.transport.sessionId ?? "";
  const post = (at: TestServer, message: object) =>
    at.fetch({
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 7, ...message }),
      headers: { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" },
    });
  const call = (tool: string, args: object) => ({
    method: "tools/call",
    params: { name: "call", arguments: { tool, arguments: args } },
  });
  const listed = await post(two, { method: "tools/list" });
  assert.match(await listed.text(), /"tools":/);
  const running = await post(two, call("note:wait", { path: "go.txt" }));
  assert.equal(running.status, 200);
  await writeFile(ws.file("go.txt"), "");
  assert.match(await running.text(), /went/);
  const broken = await post(two, call("note:wait", { path: "never.txt" }));
  const batch = await two.fetch({
    method: "POST",
    body: JSON.stringify([
      { jsonrpc: "2.0", id: 8, method: "ping" },
      { jsonrpc: "2.0", id: 9, ...call("note:wait", { path: "never.txt" }) },
      { jsonrpc: "2.0", id: 10, result: {} },
    ]),
    headers: { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" },
  });
  await until(async () => (await openIn(ws)).length === 2);
  one.kill("SIGKILL");
  assert.match(await broken.text(), GONE);
  const answers = [...(await batch.text()).matchAll(/^data: (\{.*)$/gm)]
    .map(([, json = ""]) => json);
  assert.deepEqual(answers.map((json) => JSON.parse(json).id), [8, 9]);
  assert.match(`${answers[1]}`, GONE);
  await one.ended;
  const gone = await post(two, { method: "tools/list" });
  await gone.text();
  assert.equal(gone.status, 404, "the client begins another session");
  await using again = await two.connect();
  assert.ok((await again.client.listTools()).tools.length > 0);
});

Deno.test("an answer for a session counts through another process, for that session alone, until its own ends", async () => {
  const rules = { ...RULES, allow: [...RULES.allow, "filesystem:read_file"] };
  await using ws = await sceneryOf({ rules });
  await using both = await twoOf(ws);
  const { one, two } = both;
  const questions: string[] = [];
  const elicit = async ({ requestedSchema }: { readonly requestedSchema?: unknown }) => {
    const { answer } = Object(requestedSchema).properties;
    questions.push(answer.enum.join());
    await read();
    const isFirst = questions.length === 1;
    const content = { answer: isFirst ? "For this session" : "No" };
    return { action: "accept", content } satisfies ElicitResult;
  };
  await using client = await one.connect({ elicit });
  const made = async (from: typeof client.client, path: string) => {
    const call = { name: "filesystem__create_directory", arguments: { path } };
    return (await from.callTool(call)).isError !== true;
  };
  assert.ok(await made(client.client, "first"));
  assert.match(questions[0] ?? "", /For this session/);
  // The same session, sent to the other process.
  const params = { name: "filesystem__create_directory", arguments: { path: "second" } };
  const headers = {
    "mcp-session-id": client.transport.sessionId ?? "",
    "mcp-protocol-version": "2025-11-25",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params });
  const through = await two.fetch({ method: "POST", body, headers });
  assert.doesNotMatch(await through.text(), /isError|"error"/);
  assert.equal(questions.length, 1);
  // Another session of the same client, at the other process.
  await using other = await two.connect({ elicit });
  assert.equal(await made(other.client, "third"), false);
  assert.equal(questions.length, 2);
  one.kill("SIGKILL");
  await one.ended;
  const gone = await two.fetch({ method: "POST", body, headers });
  await gone.body?.cancel();
  assert.equal(gone.status, 404);
  await using again = await two.connect({ elicit });
  assert.equal(await made(again.client, "fourth"), false);
  assert.equal(questions.length, 3);
  const folders = await Promise.all(["first", "second", "third", "fourth"].map(async (name) => {
    const info = await stat(ws.file(name)).catch(() => undefined);
    return info?.isDirectory() ?? false;
  }));
  assert.deepEqual(folders, [true, true, false, false]);
});

Deno.test("a sender without the key is refused, nothing on the wire is readable, and no request counts twice", async () => {
  await using ws = await sceneryOf();
  await using one = await servePml(ws, [], OWN_PROCESS);
  const file = await registered(ws);
  const { address } = JSON.parse(await readFile(file, "utf8"));
  const post = (body: string, to: string = address, authorization = `Bearer ${one.token}`) =>
    fetch(`http://${to}/`, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", authorization },
    });
  const refused = async (...sent: Parameters<typeof post>) => {
    const response = await post(...sent);
    assert.match(await response.text(), /it is not sealed/, sent[0].slice(0, 80));
    assert.equal(response.status, 403);
  };
  for (const body of ['"AAAA"', '""', "{}", JSON.stringify("x".repeat(500))]) await refused(body);
  const told = async () => JSON.stringify(ofKind(await journalOf(ws), "event"));
  await until(async () => (await told()).includes("it is not sealed"));
  assert.ok(!(await told()).includes(one.token));

  // A listener on the wire sees the requests, and can send them once more.
  const [bodies, passes, answers] = [[], [], []] as [string[], string[], string[]];
  await using listener = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const pass = request.headers.get("authorization") ?? "";
      const body = await request.text();
      bodies.push(body);
      passes.push(pass);
      const response = await post(body, address, pass);
      const text = await response.text();
      answers.push(text);
      return new Response(text);
    },
  );
  await writeFile(file, JSON.stringify({ address: `127.0.0.1:${listener.addr.port}` }));
  await using two = await servePml(ws, [], OWN_PROCESS);
  const asked = await askedBy(one);
  assert.match((await callAt(two, "asks:ask_name", asked)).text, /Ada/);
  assert.equal(bodies.length, 1);
  // Sealed bytes are written in base64, which can contain short words by chance, but no quotes.
  for (const text of [...bodies, ...passes, ...answers]) {
    assert.doesNotMatch(text, new RegExp(`Ada[^\\w-]|ask_name|${one.token}`));
  }
  const [[body = ""], [pass]] = [bodies, passes];
  await refused(body, address, pass);
  // The pass is valid for one process only.
  await refused(body, await addressBeside(file), pass);

  // An answer that is not sealed is invalid.
  const other = await askedBy(one);
  await using liar = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response(`${answers[0]}`),
  );
  await writeFile(file, JSON.stringify({ address: `127.0.0.1:${liar.addr.port}` }));
  const lied = await callAt(two, "asks:ask_name", other);
  assert.match(lied.text, GONE);
});

Deno.test("a forwarded request is authorized by the token that the client sent", async () => {
  await using ws = await sceneryOf();
  await using _ = await servePml(ws, [], OWN_PROCESS);
  const file = await registered(ws);
  const { address } = JSON.parse(await readFile(file, "utf8"));
  const sealer = new Sealer(new TextEncoder().encode(KEY), "pml replicas");
  const body = { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: META } };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/list",
  };
  const passedOn = async (identity: string) => {
    const { signal } = new AbortController();
    const other = new OtherProcess(basename(file), address, sealer);
    const request = { identity, method: "POST", headers, body };
    const [head] = await Array.fromAsync(other.send(request, signal));
    return (head as AnswerHead).status;
  };
  assert.equal(await passedOn(tokenHash(CI)), 200);
  // The other process may not have noticed yet that the identity has another token.
  const token = tokenHash("token-of-the-ci-0002");
  await configure(ws, { identities: { ci: { token } } });
  await until(async () => await passedOn(tokenHash(CI)) === 401);
  assert.equal(await passedOn(token), 200);
});

Deno.test("requests to the address of a process use no memory without the key", async () => {
  await using ws = await sceneryOf();
  await using one = await servePml(ws, [], OWN_PROCESS);
  const { address } = JSON.parse(await readFile(await registered(ws), "utf8"));
  const before = await rssOf(one.pid);
  const head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
    `Content-Length: ${15 << 20}\r\n\r\n"`;
  const half = "A".repeat(14 << 20);
  const port = Number(address.split(":")[1]);
  const sent = Array.from({ length: 30 }, () => rawHttp(port, [head, half], { ms: 20_000 }));
  let [most, isOver] = [0, false];
  const answers = Promise.all(sent).finally(() => isOver = true);
  await until(async () => {
    most = Math.max(most, await rssOf(one.pid));
    return isOver;
  });
  const statuses = (await answers).map(({ status }) => status);
  assert.ok(most - before < 150 << 20, `${(most - before) >> 20} MB for 30 half requests`);
  assert.deepEqual([...new Set(statuses)], [403]);
});

Deno.test("an old address file, or one that other accounts can write, is not used", async () => {
  await using ws = await sceneryOf();
  await using one = await servePml(ws, [], OWN_PROCESS);
  const file = await registered(ws);
  await using two = await servePml(ws, [], OWN_PROCESS);
  let count = 0;
  await using listener = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => {
      count++;
      return new Response("");
    },
  );
  one.kill("SIGSTOP");
  await writeFile(file, JSON.stringify({ address: `127.0.0.1:${listener.addr.port}` }));
  const id = file.slice(-32);
  const answer = () =>
    callAt(two, "asks:ask_name", {
      requestState: `run-${id}.${crypto.randomUUID()}`,
      inputResponses: { one: NAME },
    });
  assert.match((await answer()).text, GONE);
  assert.equal(count, 1, "it is used while all is well");
  await chmod(file, 0o666);
  assert.match((await answer()).text, GONE);
  await chmod(file, 0o600);
  const old = new Date(Date.now() - 60_000);
  await utimes(file, old, old);
  assert.match((await answer()).text, GONE);
  for (const name of ["../config.yaml", `${"0".repeat(32)}`, "x"]) {
    const said = await callAt(two, "asks:ask_name", { requestState: `run-${name}.x` });
    assert.match(said.text, GONE);
  }
  assert.equal(count, 1);
  one.kill("SIGCONT");
  await using _ = await connectHttp(two);
});
