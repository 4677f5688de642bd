/**
 * Tests each kind of call with clients of both revisions over both transports, from one table, with
 * the requests and reports of servers of both revisions during a call. Other tests use one
 * revision, unless the revision changes the behavior that they test.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { withoutTypeCheck } from "./attacks/code_tools.ts";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { picked, read } from "./attacks/questions.ts";
import { makeScene, type Scene } from "./attacks/stage.ts";
import { BothHttp } from "./kit/both_server.ts";
import { type Era, ERAS, type Json } from "./kit/json_rpc.ts";
import { denoServer } from "./kit/pml_command.ts";
import { RawStdio, type RawStdioOptions, WAYS } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";
import { answers, codeIn, type ScriptScene, scriptScene } from "./script_scene.ts";

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
  const code = withoutTypeCheck("return await mcp.s.form({});");
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

/** A server over stdio, and the requests that it received. */
class StdioServer implements AsyncDisposable {
  readonly #folder = Deno.makeTempDirSync();
  readonly #ledger = join(this.#folder, "ledger");

  /** Returns its definition. */
  get definition(): object {
    return denoServer("tests/kit/both_server.ts", this.#ledger);
  }

  /** Replaces the program of the server. */
  async become(kind: string): Promise<void> {
    await Deno.writeTextFile(`${this.#ledger}.kind`, kind);
  }

  readonly ledger = (): Promise<string> => Deno.readTextFile(this.#ledger).catch(() => "");

  /** Returns the methods that the last process received. */
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

const WHO = {
  ask: {
    method: "elicitation/create",
    params: {
      message: "Who?",
      requestedSchema: {
        type: "object",
        properties: { name: { type: "string" } },
      },
    },
  },
} as const;
const [TEXT, ERROR] = ["x".repeat(1_000_000), '"error":{"code":7,"message":"it broke"}'];

/** Checks the outcome of each kind of call. It is the same in all revisions and transports. */
const CALLS: Readonly<Record<string, (scene: ScriptScene) => Promise<void>>> = {
  "a call": async ({ call }) => assert.equal(textOf(await call()), "done"),
  "a call through a meta-tool": async ({ pml }) => {
    assert.equal(textOf(await pml.callTool("call", { tool: "s:run", arguments: {} })), "done");
  },
  "a call that a rule denies": async ({ call }) => {
    assert.equal(codeIn(await call({}, "s__other")), "PERMISSION_DENIED");
  },
  "a call that a rule asks about": async ({ pml, ledger }) => {
    assert.equal(textOf(await pml.callTool("s__strict", { n: 1 })), "done");
    const lines = (await ledger()).filter((line) => line.startsWith("call strict"));
    assert.deepEqual(lines, ['call strict {"n":1}']);
  },
  "a call that the user declines": async ({ pml, ledger }) => {
    assert.equal(codeOf(await pml.callTool("s__strict", { n: 2 })), "APPROVAL_DECLINED");
    assert.ok(!(await ledger()).includes('call strict {"n":2}'));
  },
  "a call that its server asks about": async ({ pml }) => {
    assert.match(textOf(await pml.callTool("s__run", { steps: [WHO] })), /"accept".*"Ann"/);
  },
  "a call that its server answers with an error": async ({ call }) => {
    assert.match(textOf(await call(answers(ERROR))), /"s" answered with the error 7: it broke/);
  },
  "a call with a result that is an error": async ({ call }) => {
    const content = '"content":[{"type":"text","text":"it failed"}]';
    const { result } = await call(answers(`"result":{${content},"isError":true}`));
    assert.deepEqual([result?.isError, textOf({ result })], [true, "it failed"]);
  },
  "a call of a tool that does not exist": async ({ pml }) => {
    assert.equal(codeOf(await pml.callTool("call", { tool: "s:none" })), "UNKNOWN_TOOL");
    assert.equal((await pml.callTool("none")).error?.code, -32602);
  },
  "a call with a large result": async ({ call }) => {
    const content = `[{"type":"text","text":"${TEXT}"}]`;
    const { result } = await call(answers(`"result":{"content":${content},"x/kept":1}`));
    assert.deepEqual([textOf({ result }), result?.["x/kept"]], [TEXT, 1]);
  },
  "a call with progress": async ({ pml }) => {
    const params = { progressToken: "$TOKEN", progress: 7 };
    const line = JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params });
    const steps = [{ write: line.replace('"$TOKEN"', "$TOKEN") }];
    const more = { _meta: { progressToken: "mine" } };
    await pml.request("tools/call", { name: "s__run", arguments: { steps }, ...more });
    const reported = pml.messages.filter(({ method }) => method === "notifications/progress");
    assert.deepEqual(reported.map(({ params }) => [params?.progressToken, params?.progress]), [
      ["mine", 7],
    ]);
  },
  "a call that is cancelled": async ({ ws, pml, call, ledger }) => {
    const args = { steps: [{ until: ws.file("never") }], held: 1 };
    const { id } = pml.begin("tools/call", { name: "s__run", arguments: args });
    await until(async () => (await ledger()).includes('call run {"held":1}'));
    await pml.notify("notifications/cancelled", { requestId: id });
    await until(async () => (await ledger()).includes("cancelled"));
    assert.equal(textOf(await call()), "done");
    assert.ok(!pml.messages.some((one) => one.id === id && one.method === undefined));
  },
  "an unknown tool": async ({ pml }) => {
    for (const name of ["s__rum", "nothing"]) {
      const { error } = await pml.request("tools/call", { name, arguments: {} });
      assert.equal(error?.code, -32602);
      // `search` is not in the list of `full_proxy`.
      assert.match(String(error?.message), /Use a name from `tools\/list`$/);
    }
  },
  "a list": async ({ pml }) => {
    const { result } = await pml.request("tools/list", {});
    const names = (result?.tools as unknown as readonly Json[]).map(({ name }) => String(name));
    const own = names.filter((name) => name.startsWith("s__"));
    assert.deepEqual(own, ["s__run", "s__shaped", "s__strict"]);
    assert.ok(names.includes("filesystem__read_file"));
  },
};

for (const { door, era, on } of WAYS) {
  Deno.test(`each kind of call has the same outcome, on ${on}`, async (t) => {
    const requests: string[] = [];
    await using scene = await scriptScene(era, {
      door,
      rules: { allow: ["s:run", "s:shaped"], deny: ["s:other"], ask: ["s:strict"] },
      config: { gateway: { tools_exposure: "full_proxy" } },
      answer: async (_, { message }) => {
        const text = String(message);
        requests.push(text);
        if (text.startsWith("Server s asks")) return { action: "accept", content: { name: "Ann" } };
        if (text.includes('"n": 1')) return picked("Yes");
        // PML treats an immediate refusal as the answer of a client without a user.
        await read();
        return picked("No");
      },
    });
    for (const [kind, run] of Object.entries(CALLS)) await t.step(kind, () => run(scene));
    assert.equal(requests.length, 3, requests.join());
    scene.pml.assertClean();
  });
}
