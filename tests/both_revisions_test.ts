/**
 * Servers of both revisions behind PML, for clients of either revision: what a server asks and
 * reports during a call reaches the client.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { textOf } from "./attacks/oracles.ts";
import { makeScene, type Scene } from "./attacks/stage.ts";
import { BothHttp } from "./kit/both_server.ts";
import { type Era, ERAS, type Json } from "./kit/json_rpc.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { RawStdio, type RawStdioOptions } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

const NEWEST = "2026-07-28";
const CLIENT: RawStdioOptions = {
  capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
  answer: (method, params) => {
    if (method === "roots/list") return { roots: [{ uri: "file:///of-client" }] };
    if (method === "sampling/createMessage") {
      return { role: "assistant", model: "m", content: { type: "text", text: "it" } };
    }
    const isOurs = /@sampling/.test(String(params.message));
    return { action: "accept", content: isOurs ? { answer: "Yes" } : { name: "Ann" } };
  },
};

async function sceneOf(era: Era, server: object, more: object = {}): Promise<Scene> {
  return await makeScene({
    era,
    limits: { first_list_ms: 60_000 },
    pml: { version: 1, permissions: { allow: ["s:*"] }, mcpServers: { s: server } },
    ...CLIENT,
    ...more,
  });
}

interface Answer {
  readonly revision: string;
  readonly got: Json;
}

async function call({ pml }: Scene, name: string): Promise<Answer> {
  let text = "";
  // The first call may be answered with an error that the tool is new.
  await until(async () => (text = textOf(await pml.callTool(`s__${name}`))).startsWith("{"));
  return JSON.parse(text);
}

async function assertAll(scene: Scene, revision: string, ledger: () => Promise<string>) {
  const { pml } = scene;
  const got = async (name: string) => {
    const answer = await call(scene, name);
    assert.equal(answer.revision, revision, name);
    return JSON.stringify(answer.got);
  };
  assert.match(await got("form"), /"accept".*"Ann"/);
  assert.match(await got("page"), /"accept"/);
  assert.match(await got("sample"), /"text":"it"/);
  assert.match(await got("roots"), /"roots":\[\{"uri":"file:/);
  const isNewest = pml.era === NEWEST;
  const _meta = isNewest ? { "io.modelcontextprotocol/logLevel": "info" } : {};
  const logged = { name: "s__log", arguments: {}, _meta };
  assert.match(textOf(await pml.request("tools/call", logged)), new RegExp(revision));
  const told = { name: "s__progress", arguments: {}, _meta: { progressToken: "t" } };
  assert.match(textOf(await pml.request("tools/call", told)), new RegExp(revision));
  const has = (method: string, text: string) =>
    pml.messages.some((one) => one.method === method && JSON.stringify(one).includes(text));
  await until(() => has("notifications/message", "logged in a call"));
  await until(() => has("notifications/progress", '"progress":7'));
  const { id } = pml.begin("tools/call", { name: "s__wait", arguments: {} });
  await until(async () => (await ledger()).includes(`call wait ${revision}`));
  await pml.notify("notifications/cancelled", { requestId: id });
  await until(async () => (await ledger()).includes("cancelled"));
  assert.match(textOf(await pml.callTool("s__progress")), new RegExp(revision));
}

for (const era of ERAS) {
  Deno.test(`a call over HTTP uses the revision of its client, ${era}`, async () => {
    await using server = new BothHttp();
    await using scene = await sceneOf(era, { type: "http", url: server.url });
    const revision = era === NEWEST ? "newest" : "older";
    await assertAll(scene, revision, () => Promise.resolve(server.ledger.join("\n")));
    assert.equal(server.sessions, era === NEWEST ? 0 : 1);
    await scene.pml.close();
    assert.equal(server.sessions, 0, "the session is closed");
  });
}

for (const none of ["hasOlder", "isStateless"] as const) {
  Deno.test(`a call of an older client uses the newest revision without sessions, ${none}`, async () => {
    await using server = new BothHttp();
    server[none] = !server[none];
    await using scene = await sceneOf("2025-11-25", { type: "http", url: server.url });
    for (const name of ["form", "form", "sample"]) {
      assert.equal((await call(scene, name)).revision, "newest");
    }
  });
}

Deno.test("a call of the meta-tools and of code uses the revision of its client", async () => {
  await using server = new BothHttp();
  await using scene = await sceneOf("2025-11-25", { type: "http", url: server.url });
  await call(scene, "form");
  const { pml } = scene;
  const one = await pml.callTool("call", { tool: "s:form", arguments: {} });
  assert.match(textOf(one), /older/);
  const calls = [{ tool: "s:form" }, { tool: "s:page" }];
  const both = textOf(await pml.callTool("batch", { calls }));
  assert.equal(both.split("older").length - 1, 2, both);
  const code = "return await mcp.s.form({});";
  assert.match(textOf(await pml.callTool("execute_code", { code })), /older/);
});

Deno.test("a call continues in another session if the server lost the first one", async () => {
  await using server = new BothHttp();
  await using scene = await sceneOf("2025-11-25", { type: "http", url: server.url });
  assert.equal((await call(scene, "form")).revision, "older");
  await server.forget();
  assert.equal((await call(scene, "form")).revision, "older");
  await server.forget();
  server.hasOlder = false;
  assert.equal((await call(scene, "form")).revision, "newest");
});

Deno.test("a tool that changed while its session was lost does not run before its approval", async () => {
  await using server = new BothHttp();
  await using scene = await sceneOf("2025-11-25", { type: "http", url: server.url });
  assert.equal((await call(scene, "form")).revision, "older");
  const calls = () => server.ledger.filter((line) => line.startsWith("call ")).length;
  const before = calls();
  server.description = "changed";
  await server.forget();
  const answer = textOf(await scene.pml.callTool("s__form"));
  assert.match(answer, /changed/);
  assert.equal(calls(), before);
});

/** A server over stdio, and what it was asked. */
class StdioServer implements AsyncDisposable {
  readonly #folder = Deno.makeTempDirSync();
  readonly #ledger = join(this.#folder, "ledger");

  /** Its definition. */
  get definition(): object {
    const [command, ...args] = [...denoCommand("tests/kit/both_server.ts"), this.#ledger];
    return { command, args };
  }

  /** Makes the program another one. */
  async become(kind: string): Promise<void> {
    await Deno.writeTextFile(`${this.#ledger}.kind`, kind);
  }

  readonly ledger = (): Promise<string> => Deno.readTextFile(this.#ledger).catch(() => "");

  /** Returns the methods that the last process got. */
  async methods(): Promise<readonly string[]> {
    const last = (await this.ledger()).split("start\n").at(-1) ?? "";
    return last.split("\n").filter((line) => !line.startsWith("call "));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true });
  }
}

/** Starts PML again in the same workspace and home. */
async function again({ ws }: Scene, era: Era): Promise<Scene> {
  const pml = new RawStdio(ws, { ...CLIENT, era });
  await pml.open();
  return { ws, pml, [Symbol.asyncDispose]: () => pml[Symbol.asyncDispose]() };
}

for (const era of ERAS) {
  Deno.test(`a server over stdio is used in its newest revision from the second start on, ${era}`, async () => {
    await using server = new StdioServer();
    await using first = await sceneOf(era, server.definition);
    assert.equal((await call(first, "form")).revision, "older");
    await until(async () => (await server.methods()).includes("server/discover"));
    await first.pml.close();
    await using next = await again(first, era);
    await assertAll(next, "newest", server.ledger);
    assert.ok(!(await server.methods()).includes("initialize"));
  });
}

for (const kind of ["pinned", "older", "fragile"]) {
  Deno.test(`a server over stdio is asked once for the newest revision, ${kind}`, async () => {
    await using server = new StdioServer();
    await server.become(kind);
    await using first = await sceneOf("2025-11-25", server.definition);
    assert.equal((await call(first, "form")).revision, "older");
    await until(async () => (await server.ledger()).includes("server/discover"));
    await first.pml.close();
    await using next = await again(first, "2025-11-25");
    await assertAll(next, "older", server.ledger);
    assert.equal((await server.ledger()).split("server/discover").length - 1, 1);
  });
}

for (const kind of ["older", "fragile"]) {
  Deno.test(`a server over stdio that lost its newest revision is used in the older one, ${kind}`, async () => {
    await using server = new StdioServer();
    await using first = await sceneOf("2026-07-28", server.definition);
    assert.equal((await call(first, "form")).revision, "older");
    await until(async () => (await server.methods()).includes("server/discover"));
    await first.pml.close();
    await server.become(kind);
    for (const _ of ["second", "third"]) {
      await using next = await again(first, "2026-07-28");
      assert.equal((await call(next, "form")).revision, "older");
      await next.pml.close();
    }
    assert.ok((await server.methods()).includes("initialize"));
  });
}

Deno.test("no session is opened, and no server asked, before a call is approved", async () => {
  await using far = new BothHttp();
  await using near = new StdioServer();
  const servers = { far: { type: "http", url: far.url }, near: near.definition };
  const pml = { version: 1, permissions: { deny: ["*"] }, mcpServers: servers };
  await using scene = await makeScene({ era: "2025-11-25", pml, ...CLIENT });
  for (const name of ["far__form", "near__form"]) await scene.pml.callTool(name);
  assert.ok(!far.ledger.join().includes("initialize"));
  assert.equal(far.sessions, 0);
  assert.equal(await near.ledger(), "");
});
