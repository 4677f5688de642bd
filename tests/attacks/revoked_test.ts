/**
 * An identity whose token is revoked while it works: its requests end, and the next identity of the
 * same name gets nothing of it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { openApp } from "../../src/app/app.ts";
import { environmentOf } from "../../src/config/env.ts";
import { DoorClient, type Reading } from "../kit/door_client.ts";
import { type Era, ERAS } from "../kit/json_rpc.ts";
import { repoFile } from "../kit/pml_command.ts";
import { servePml, type TestServer } from "../kit/pml_serve.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml, runPmlOnTerminal } from "../kit/run.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { ASK, type Said, scriptServer } from "../script_scene.ts";
import { codeOf, journalOf, ofKind, textOf } from "./oracles.ts";
import { makeAttackWorkspace } from "./stage.ts";

const [FIRST, SECOND] = ["token-of-the-ci-0001", "token-of-the-ci-0002"];
const BOT = "token-of-the-bot-0003";
const INFO = { name: "t", version: "1" };

async function give(ws: Workspace, token: string, more: object = {}): Promise<void> {
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");
  const permissions = { allow: ["s:*", "filesystem:read_file"] };
  const identities = {
    ci: { token: hash(token), permissions },
    bot: { token: hash(BOT), permissions },
  };
  const config = { limits: { inline_bytes: 2_000 }, identities, ...more };
  await Deno.writeTextFile(`${ws.home}/config.yaml`, JSON.stringify(config));
}

async function scenery(): Promise<Workspace> {
  const ws = await makeAttackWorkspace({
    files: { ledger: "", "large.txt": "x".repeat(9_000) },
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:read_file", "s:*"] },
      mcpServers: { s: scriptServer() },
    },
  });
  await give(ws, FIRST);
  return ws;
}

/** A client with a token, on one revision. */
class Speaker {
  readonly #served: TestServer;
  readonly #era: Era;
  token = FIRST;
  session: string | undefined;

  constructor(served: TestServer, era: Era) {
    this.#served = served;
    this.#era = era;
  }

  async open(): Promise<void> {
    this.session = undefined;
    if (this.#era === "2026-07-28") return;
    const params = { protocolVersion: this.#era, capabilities: {}, clientInfo: INFO };
    const answer = await this.post("initialize", params);
    await answer.text();
    this.session = answer.headers.get("mcp-session-id") ?? undefined;
  }

  async post(method: string, params: Record<string, unknown>): Promise<Response> {
    const isModern = this.#era === "2026-07-28";
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": this.#era,
      "io.modelcontextprotocol/clientInfo": INFO,
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const all = isModern ? { ...params, _meta } : params;
    return await this.#served.fetch({
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: crypto.randomUUID(), method, params: all }),
      headers: {
        ...this.#headers(),
        ...isModern && { "mcp-method": method, "mcp-name": `${params.name ?? params.uri ?? ""}` },
      },
    });
  }

  /** Sends a batch of messages, which revision 2025-03-26 allows. */
  async send(all: readonly object[]): Promise<Response> {
    const body = JSON.stringify(all.map((one) => ({ jsonrpc: "2.0", ...one })));
    return await this.#served.fetch({ method: "POST", body, headers: this.#headers() });
  }

  async call(name: string, args: object): Promise<string> {
    return await (await this.post("tools/call", { name, arguments: args })).text();
  }

  /** Opens the stream for notifications. */
  async stream(): Promise<Response> {
    if (this.#era === "2026-07-28") {
      const notifications = { toolsListChanged: true };
      return await this.post("subscriptions/listen", { notifications });
    }
    const headers = { ...this.#headers(), accept: "text/event-stream" };
    return await this.#served.fetch({ headers });
  }

  #headers(): Record<string, string> {
    return {
      authorization: `Bearer ${this.token}`,
      "mcp-protocol-version": this.#era,
      ...this.session && { "mcp-session-id": this.session },
    };
  }
}

/** Throws if calls go on. A server may still read a call that was sent before. */
async function assertQuiet(ledger: () => Promise<readonly string[]>): Promise<void> {
  let before: readonly string[] = [];
  await until(async () => {
    const earlier = before;
    await delay(100);
    return earlier.length === (before = await ledger()).length;
  });
  await delay(400);
  assert.deepEqual(await ledger(), before, "its calls went on");
}

for (const era of ERAS) {
  Deno.test(`a revoked identity loses all its requests at once, on ${era}`, async () => {
    await using ws = await scenery();
    await using served = await servePml(ws);
    const ci = new Speaker(served, era);
    await ci.open();
    const tool = (steps: object[], more: object = {}) => ({
      tool: "s:run",
      arguments: { steps, ...more },
    });
    const kept = await ci.call("call", {
      tool: "filesystem:read_file",
      arguments: { path: "large.txt" },
    });
    const [uri = ""] = /pml:\/\/results\/[\w.-]+/.exec(kept) ?? [];
    assert.notEqual(uri, "", kept);
    await ci.call("call", tool([]));
    // On a busy machine the revocation happens seconds later.
    const tasks = Array.from({ length: 100 }, (_, at) => ({
      ...{ id: `t${at}`, ...tool([{ wait: 200 }], { plan: at }) },
      ...at > 0 && { depends_on: [`t${at - 1}`] },
    }));
    const code = "for (;;) await m\\u0063p.s.run({ code: 1, steps: [{ wait: 20 }] })";
    const working = [
      ci.call("call", tool([{ until: ws.file("never") }], { long: 1 })),
      ci.call("execute_code", { code }),
      ci.call("execute_workflow", { plan: { tasks } }),
      ci.stream().then((response) => response.text()),
    ];
    const ledger = async () =>
      (await Deno.readTextFile(ws.file("ledger"))).split("\n").filter((one) => /^call/.test(one));
    await until(async () => {
      const noted = (await ledger()).join();
      return ["long", "code", "plan"].every((one) => noted.includes(`{"${one}":`));
    });
    const { code: exit, stderr } = await runPml(ws, ["token", "revoke", "ci"]);
    assert.equal(exit, 0, stderr);
    const lines = await Promise.all(working.map((one) => one.catch(String)));
    for (const one of lines) assert.doesNotMatch(one, /"isError":false|"done"/);
    await assertQuiet(ledger);
    const records = await journalOf(ws);
    const ended = new Set(ofKind(records, "end").map(({ callId }) => callId));
    const open = ofKind(records, "start").filter(({ callId }) => !ended.has(callId));
    assert.deepEqual(open, []);
    // The next identity of this name has no state of it.
    await give(ws, SECOND);
    ci.token = SECOND;
    await until(async () => (await ci.post("tools/list", {})).status !== 401);
    if (era === "2025-11-25") {
      assert.equal((await ci.post("tools/list", {})).status, 404);
      await ci.open();
    }
    assert.match(await (await ci.post("resources/read", { uri })).text(), /Cannot find/);
  });
}

Deno.test("an approval for a revoked token is not valid for another token", async () => {
  await using ws = await scenery();
  await using served = await servePml(ws);
  const ci = new Speaker(served, "2026-07-28");
  const write = { tool: "filesystem:write_file", arguments: { path: "b.txt", content: "x" } };
  assert.match(await ci.call("call", write), /APPROVAL_REQUIRED/);
  const { calls: [{ id }] } = JSON.parse((await runPml(ws, ["approve", "--json"])).stdout);
  const typed = [["Approve exactly this call?", "y"]] as const;
  const approved = await runPmlOnTerminal(ws, ["approve", id.slice(0, 8)], { typed });
  assert.equal(approved.code, 0, approved.stdout);
  await give(ws, SECOND);
  ci.token = SECOND;
  await until(async () => (await ci.post("tools/list", {})).status !== 401);
  assert.match(await ci.call("call", write), /APPROVAL_REQUIRED/);
  await assert.rejects(Deno.stat(ws.file("b.txt")), "the call of the other token ran");
});

/** Makes a call of a client. */
function script(client: DoorClient, said: Said): Promise<Reading> {
  return client.begin("tools/call", { name: "s__run", arguments: said });
}

/** Waits until a server wrote a note several times. */
async function noted(ws: Workspace, what: string, times = 1): Promise<void> {
  await until(async () => (await Deno.readTextFile(ws.file("ledger"))).split(what).length > times);
}

for (const era of ERAS) {
  Deno.test(`each request of a revoked identity is answered, and others are not affected, on ${era}`, async () => {
    await using ws = await scenery();
    await using served = await servePml(ws);
    await using own = new RawStdio(ws, { era });
    await own.open();
    const capabilities = { elicitation: { form: {} } };
    await using ci = await DoorClient.open(served, { era, token: FIRST, capabilities });
    await using bot = await DoorClient.open(served, { era, token: BOT, capabilities });
    const isOlder = era === "2025-11-25";
    const listen = (client: DoorClient) =>
      isOlder
        ? client.listen()
        : client.begin("subscriptions/listen", { notifications: { toolsListChanged: true } });
    const all = [];
    const steps = [{ until: ws.file("go") }];
    for (const [at, client] of [ci, bot].entries()) {
      const stream = await listen(client);
      const asking = await script(client, ASK);
      // In the newest revision the question is the response.
      const { result } = await asking.message(({ method, result }) =>
        method === "elicitation/create" || result !== undefined
      );
      const long = script(client, { steps, long: 1 });
      await noted(ws, '"long":1', at + 1);
      all.push({ stream, asking, long, state: result?.requestState, asked: result?.inputRequests });
    }
    const [gone, stays] = all as [typeof all[number], typeof all[number]];
    const window = own.callTool("s__run", { steps, own: 1 });
    await noted(ws, '"own":1');
    const { code, stderr } = await runPml(ws, ["token", "revoke", "ci"]);
    assert.equal(code, 0, stderr);
    for (const reading of [await gone.long, gone.stream, gone.asking]) await reading.over;
    const ends = [await gone.long, ...isOlder ? [gone.asking] : []];
    for (const { messages, text } of ends) {
      const answers = messages.filter(({ method }) => method === undefined);
      assert.deepEqual(answers.map(codeOf), ["UPSTREAM_DOWN"], text);
    }
    const again = (one: typeof gone) => ({
      ...{ name: "s__run", arguments: ASK, requestState: one.state },
      inputResponses: Object.fromEntries(
        Object.keys(one.asked ?? {}).map((key) => [key, { action: "accept", content: {} }]),
      ),
    });
    assert.equal((await ci.begin("tools/call", again(gone))).status, 401);
    await Deno.writeTextFile(ws.file("go"), "");
    assert.equal(textOf(await window), "done");
    const answer = await (await stays.long).message(({ method }) => method === undefined);
    assert.equal(textOf(answer), "done");
    if (!isOlder) {
      assert.match(textOf(await bot.request("tools/call", again(stays))), /accept/);
    }
    let isOver = false;
    void stays.stream.over.then(() => isOver = true);
    await script(bot, {}).then(({ over }) => over);
    assert.ok(!isOver, "the stream of another ended");
    assert.doesNotMatch(served.stderr, / (?:warn|error) /);
  });
}

for (const how of ["is revoked", "loses its PML"] as const) {
  Deno.test(`each request of a batch is answered once if its identity ${how}`, async () => {
    await using ws = await scenery();
    await using served = await servePml(ws, [], { preload: repoFile("tests/kit/short_drain.ts") });
    const ci = new Speaker(served, "2025-11-25");
    await ci.open();
    const steps = [{ until: ws.file("never") }];
    const call = { name: "call", arguments: { tool: "s:run", arguments: { steps } } };
    const odd = '"id":1}\u2028\n';
    const answer = await ci.send([
      { id: 9, result: {} },
      { id: 1, method: "ping" },
      { method: "notifications/initialized" },
      { id: odd, method: "ping" },
      { id: 3, method: "no/such" },
      { id: 4, method: "prompts/get", params: { name: "none" } },
      { id: 2, method: "tools/call", params: call },
    ]);
    const ledger = () => Deno.readTextFile(ws.file("ledger"));
    await until(async () => (await ledger()).includes("call"));
    if (how === "is revoked") await runPml(ws, ["token", "revoke", "ci"]);
    else served.kill("SIGTERM");
    const said = [...(await answer.text()).matchAll(/^data: (\{[^\n]*)$/gm)];
    const ids = said.map(([, json = ""]) => JSON.parse(json).id);
    assert.deepEqual(ids.toSorted(), [1, odd, 2, 3, 4].toSorted(), said.join());
  });
}

Deno.test("a PML whose identity or its token was removed runs no call, and reports no invalid configuration", async () => {
  for (const config of ["{}", '{"identities":{"ci":{"permissions":{"allow":["*"]}}}}']) {
    await assertEnds(config);
  }
});

/** Checks that a PML of an identity has no access after a change of `config.yaml`. */
async function assertEnds(config: string): Promise<void> {
  await using ws = await scenery();
  const lines: string[] = [];
  await using app = await openApp({
    ...{ cwd: ws.path, identity: "ci", environment: environmentOf(ws.env) },
    write: (line) => void lines.push(line),
  });
  await Deno.writeTextFile(`${ws.home}/config.yaml`, config);
  await app.policy.reload();
  assert.match(app.config().problem?.message ?? "", /identities\.ci/);
  assert.deepEqual(lines, []);
}

Deno.test("an error in config.yaml ends no request of an identity, and admits no one", async () => {
  await using ws = await scenery();
  await using served = await servePml(ws);
  await using ci = await DoorClient.open(served, { token: FIRST });
  const long = script(ci, { steps: [{ until: ws.file("go") }], long: 1 });
  await noted(ws, '"long":1');
  await give(ws, FIRST, { limits: { inline_bytes: "many" } });
  await until(() => served.stderr.includes("Cannot use the configuration"));
  assert.equal((await ci.begin("tools/list")).status, 401);
  await Deno.writeTextFile(ws.file("go"), "");
  const answer = await (await long).message(({ method }) => method === undefined);
  assert.equal(textOf(answer), "done");
  await give(ws, FIRST);
  await until(async () => (await ci.begin("tools/list")).status === 200);
  await give(ws, SECOND);
  await until(async () => (await ci.begin("tools/list")).status === 401);
});
