/**
 * Calls of servers that require a sign-in: if the client can open a page, the user signs in there,
 * and the call continues; any other client gets the command to run. In both revisions.
 *
 * @module
 */

import assert from "node:assert/strict";
import { sha256 } from "../src/core/hash.ts";
import { withoutTypeCheck } from "./attacks/code_tools.ts";
import { textOf } from "./attacks/oracles.ts";
import { READING_MS } from "./attacks/questions.ts";
import { makeAttackWorkspace, makeScene, type Scene, type SceneOptions } from "./attacks/stage.ts";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import { browse, type BrowseOptions } from "./kit/browser.ts";
import { type Era, ERAS, type Message } from "./kit/json_rpc.ts";
import { connectHttp, servePml } from "./kit/pml_serve.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import { type Answerer, EACH_WAY, type RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { signIn } from "./kit/sign_in.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

const CODE = withoutTypeCheck(
  "const all = [await mcp.far.meta({}), await mcp.far.link({})]; all.length",
);
const ABLE = { elicitation: { form: {}, url: {} } };

/** The params of a question about a page. */
type Asked = Record<string, unknown>;

/** Returns a user who opens each page of a question, and signs in there. */
function person(
  options: BrowseOptions = {},
): { readonly asked: Asked[]; readonly answer: Answerer } {
  const asked: Asked[] = [];
  const answer: Answerer = (_, params) => {
    asked.push(params);
    // The browser is another program: the client answers at once.
    browse(String(params.url), options).catch(() => {});
    return { action: "accept" };
  };
  return { asked, answer };
}

async function sceneOf(
  era: Era,
  url: string,
  { rules = {}, ...options }: SceneOptions & { readonly rules?: object } = {},
): Promise<Scene> {
  const pml = {
    version: 1,
    permissions: { allow: ["far:*"], ...rules },
    mcpServers: { far: { type: "http", url } },
  };
  return await makeScene({ era, pml, capabilities: ABLE, ...options });
}

function errorOf({ result }: Message): { readonly code: string; readonly hint: string } {
  assert.equal(result?.isError as unknown, true, JSON.stringify(result));
  return (result?.structuredContent as unknown as { error: { code: string; hint: string } }).error;
}

async function stateOf(pml: RawStdio): Promise<{ readonly state: string; readonly why: string }> {
  const { result } = await pml.request("resources/read", { uri: "pml://servers" });
  const [{ text = "" } = {}] = result?.contents as unknown as readonly { text: string }[];
  return JSON.parse(text).find(({ name }: { name: string }) => name === "far");
}

function told(pml: RawStdio, method: string): number {
  return pml.messages.filter((message) => message.method === method).length;
}

for (const { door, era, on } of EACH_WAY) {
  Deno.test(`an error names the server that requires a sign-in, and the client is notified after the sign-in, on ${on}`, async () => {
    await using server = new AuthorizationServer();
    await using mcp = new ProtectedHttp("modern", { server });
    await using scene = await sceneOf(era, mcp.url, { capabilities: {}, door });
    const { pml, ws } = scene;
    const { code, hint } = errorOf(await pml.callTool("far__meta"));
    assert.deepEqual([code, hint], ["LOGIN_REQUIRED", "Run: pml login far"]);
    const search = textOf(await pml.callTool("search", { query: "meta" }));
    assert.match(search, /far failed: .*requires a sign-in/);
    assert.match((await stateOf(pml)).why, /requires a sign-in.*pml login far/);
    const changed = () => told(pml, "notifications/tools/list_changed");
    if (era === "2026-07-28") {
      const notifications = { toolsListChanged: true };
      pml.begin("subscriptions/listen", { notifications }).answer.catch(() => {}); // ends with PML
      await until(() => told(pml, "notifications/subscriptions/acknowledged") > 0);
    }
    const before = changed();
    assert.equal((await signIn(ws, "far")).code, 0);
    await until(() => changed() > before);
    assert.equal((await stateOf(pml)).state, "ready");
    assert.match(textOf(await pml.callTool("search", { query: "meta" })), /far:meta/);
    assert.equal((await pml.callTool("far__meta")).result?.isError, undefined);
    assert.equal((await runPml(ws, ["logout", "far"])).code, 0);
    await until(async () => (await pml.callTool("far__meta")).result?.isError as unknown === true);
  });
}

for (const era of ERAS) {
  for (const kind of ["legacy", "modern"] as const) {
    Deno.test(`a call continues when the user has signed in, at a ${kind} server, on ${era}`, async () => {
      await using server = new AuthorizationServer({ scopes: ["read"] });
      await using mcp = new ProtectedHttp(kind, { server, scope: "read" });
      const { asked, answer } = person();
      await using scene = await sceneOf(era, mcp.url, { answer });
      const { pml } = scene;
      const { result } = await pml.callTool("far__meta");
      assert.equal(result?.isError, undefined, JSON.stringify(result));
      assert.equal(asked.length, 1);
      const [{ mode, url, message, elicitationId } = {} as Asked] = asked;
      assert.equal(mode, "url");
      assert.equal(new URL(String(url)).origin, server.origin);
      const hosts = [server.origin, mcp.url].map((one) => new URL(one).host);
      assert.ok(
        String(message).startsWith(
          `PML asks: sign in at ${hosts[0]} for the server "far" (${hosts[1]})`,
        ),
        String(message),
      );
      const done = "notifications/elicitation/complete";
      if (era === "2025-11-25") {
        await until(() => told(pml, done) > 0);
        const said = pml.messages.find(({ method }) => method === done);
        assert.equal(said?.params?.elicitationId, elicitationId);
      } else assert.deepEqual([elicitationId, told(pml, done)], [undefined, 0]);
      assert.equal(mcp.ledger.filter((line) => line.startsWith("call meta")).length, 1);
      const after = await pml.callTool("far__link");
      assert.equal(after.result?.isError, undefined);
      assert.equal(asked.length, 1);
      assert.equal((await pml.close()).code, 0);
      assert.doesNotMatch(pml.stderr, /access-|refresh-/);
      server.assertClean();
    });
  }
}

Deno.test("a sign-in that is declined, dismissed or refused is LOGIN_REQUIRED", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  for (const action of ["decline", "cancel"]) {
    await using scene = await sceneOf("2025-11-25", mcp.url, { answer: () => ({ action }) });
    const { code, hint } = errorOf(await scene.pml.callTool("far__meta"));
    assert.deepEqual([code, hint], ["LOGIN_REQUIRED", "Run: pml login far"]);
  }
  const { answer } = person({ answer: "deny" });
  await using scene = await sceneOf("2025-11-25", mcp.url, { answer });
  const said = errorOf(await scene.pml.callTool("far__meta"));
  assert.deepEqual([said.code, said.hint], ["LOGIN_REQUIRED", "Run: pml login far"]);
  assert.deepEqual(mcp.ledger.filter((line) => line.startsWith("call")), []);
  const limits = { approval_ms: 1_000 };
  const late = { limits, answer: () => ({ action: "accept" }) };
  await using waiting = await sceneOf("2025-11-25", mcp.url, late);
  assert.equal(errorOf(await waiting.pml.callTool("far__meta")).code, "LOGIN_REQUIRED");
});

for (const era of ERAS) {
  Deno.test(`simultaneous calls ask once, and all continue, on ${era}`, async () => {
    await using server = new AuthorizationServer();
    await using mcp = new ProtectedHttp("modern", { server });
    const { asked, answer } = person();
    await using scene = await sceneOf(era, mcp.url, { answer });
    const all = await Promise.all(
      ["meta", "link", "log"].map((tool) => scene.pml.callTool(`far__${tool}`)),
    );
    for (const { result } of all) assert.equal(result?.isError, undefined, JSON.stringify(result));
    assert.deepEqual([asked.length, server.to("/authorize").length], [1, 1]);
    server.assertClean();
  });
}

Deno.test("a batch, a plan and code continue after the sign-in", async () => {
  const calls = [{ tool: "far:meta" }, { tool: "far:link" }];
  const tasks = calls.map(({ tool }, at) => ({ id: `t${at}`, tool, arguments: {} }));
  const requests = {
    batch: { calls },
    execute_workflow: { plan: { tasks } },
    execute_code: { code: CODE },
  };
  for (const [name, args] of Object.entries(requests)) {
    await using server = new AuthorizationServer();
    await using mcp = new ProtectedHttp("modern", { server });
    const { asked, answer } = person();
    await using scene = await sceneOf("2026-07-28", mcp.url, { answer });
    const response = await scene.pml.callTool(name, args);
    assert.equal(response.result?.isError, undefined, textOf(response));
    assert.doesNotMatch(textOf(response), /LOGIN_REQUIRED/);
    assert.equal(asked.length, 1, name);
    const ran = mcp.ledger.filter((line) => line.startsWith("call"));
    assert.equal(ran.length, 2, name);
  }
});

for (const era of ERAS) {
  Deno.test(`a call that asks is asked about once, whenever its server requires a sign-in, on ${era}`, async () => {
    await using server = new AuthorizationServer({ scopes: ["read", "write"] });
    const toolScopes = { meta: "write" };
    await using mcp = new ProtectedHttp("modern", { server, scope: "read", toolScopes });
    const modes: unknown[] = [];
    const { answer: open } = person();
    const answer: Answerer = async (method, params) => {
      modes.push(params.mode);
      if (params.mode === "url") return open(method, params);
      await new Promise((resolve) => setTimeout(resolve, READING_MS));
      return { action: "accept", content: { answer: "Yes" } };
    };
    await using scene = await sceneOf(era, mcp.url, { answer, rules: { allow: [] } });
    const { result } = await scene.pml.callTool("far__meta");
    assert.equal(result?.isError, undefined, JSON.stringify(result));
    // To sign in, to run the tool, and for the scope that it needs.
    assert.deepEqual(modes, ["url", "form", "url"]);
    assert.equal(mcp.ledger.filter((line) => line.startsWith("call meta")).length, 1);
    server.assertClean();
  });
}

Deno.test("a call after a sign-in obeys the rules at that time", async () => {
  const cases: readonly Record<string, string>[] = [{}, { meta: "write" }];
  for (const toolScopes of cases) {
    await using server = new AuthorizationServer();
    await using mcp = new ProtectedHttp("modern", { server, scope: "read", toolScopes });
    const isFirst = (params: Asked) =>
      !("meta" in toolScopes) || String(params.url).includes("write");
    const answer: Answerer = async (_, params) => {
      if (isFirst(params)) {
        const text = await Deno.readTextFile(ws.file(".pml.json"));
        const rules = { ...JSON.parse(text), permissions: { deny: ["far:meta"] } };
        await Deno.writeTextFile(ws.file(".pml.json"), JSON.stringify(rules));
        await until(() => pml.stderr.includes("The configuration was applied"));
      }
      browse(String(params.url)).catch(() => {});
      return { action: "accept" };
    };
    await using scene = await sceneOf("2025-11-25", mcp.url, { answer });
    const { pml, ws } = scene;
    const { code } = errorOf(await pml.callTool("far__meta"));
    assert.equal(code, "PERMISSION_DENIED");
    assert.deepEqual(mcp.ledger.filter((line) => line.startsWith("call")), []);
  }
});

Deno.test("a server that refuses the sign-in asks once", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  mcp.options.script = (request) =>
    request.headers.has("authorization")
      ? new Response("No", { status: 401, headers: { "www-authenticate": "Bearer" } })
      : undefined;
  const { asked, answer } = person();
  await using scene = await sceneOf("2026-07-28", mcp.url, { answer });
  assert.equal(errorOf(await scene.pml.callTool("far__meta")).code, "LOGIN_REQUIRED");
  assert.equal(asked.length, 1);
});

Deno.test("with questions on the terminal only, no client is asked to open a page", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  const { asked, answer } = person();
  const prepare = async ({ home }: Workspace) =>
    await Deno.writeTextFile(`${home}/config.yaml`, "approvals: { channel: terminal }\n");
  await using scene = await sceneOf("2025-11-25", mcp.url, { answer, prepare });
  assert.equal(errorOf(await scene.pml.callTool("far__meta")).code, "LOGIN_REQUIRED");
  assert.equal(asked.length, 0);
});

Deno.test("a client is notified while a call waits for a sign-in, which a cancelled call does not end", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  const asked: Asked[] = [];
  const answer: Answerer = (_, params) => {
    asked.push(params);
    return { action: "accept" };
  };
  await using scene = await sceneOf("2025-11-25", mcp.url, { answer });
  const { pml } = scene;
  const params = { name: "far__meta", arguments: {}, _meta: { progressToken: "p" } };
  const first = pml.begin("tools/call", params);
  const said = () =>
    pml.messages.some(({ params }) => /waiting for the sign-in/.test(`${params?.message}`));
  await until(said);
  await pml.notify("notifications/cancelled", { requestId: first.id, reason: "later" });
  const second = pml.begin("tools/call", { ...params, name: "far__link" });
  first.answer.catch(() => {});
  assert.equal((await browse(String(asked[0]?.url))).status, 200);
  assert.equal((await second.answer).result?.isError, undefined);
  assert.equal(asked.length, 1);
});

Deno.test("lists of tools, resources and prompts of a server continue after the sign-in", async () => {
  const requests = [
    ["tools/call", { name: "call", arguments: { tool: "far:@tools" } }],
    ["resources/read", { uri: "pml://far/test://a" }],
    ["prompts/get", { name: "far__greet", arguments: { name: "you" } }],
  ] as const;
  for (const [method, params] of requests) {
    await using server = new AuthorizationServer();
    await using mcp = new ProtectedHttp("legacy", { server });
    const { asked, answer } = person();
    // Before the sign-in, PML has no list that contains the resource, so it asks about the address.
    let addresses = 0;
    const answerBoth: Answerer = (question, params) => {
      if (params.mode === "url") return answer(question, params);
      addresses++;
      return { action: "accept", content: { answer: "Yes" } };
    };
    await using scene = await sceneOf("2025-11-25", mcp.url, { answer: answerBoth });
    const { result, error } = await scene.pml.request(method, params);
    assert.equal(error, undefined, JSON.stringify(error));
    assert.equal(result?.isError, undefined, JSON.stringify(result));
    assert.equal(asked.length, 1, method);
    assert.equal(addresses, method === "resources/read" ? 1 : 0);
  }
});

Deno.test("another identity uses the user's sign-ins only where it may use their keys", async () => {
  await using server = new AuthorizationServer();
  await using mcp = new ProtectedHttp("modern", { server });
  const permissions = { allow: ["far:*"] };
  const tokens = { rich: "token-of-the-rich-0001", poor: "token-of-the-poor-0002" };
  const identities = {
    rich: { token: sha256(tokens.rich), permissions },
    poor: { token: sha256(tokens.poor), permissions, keys: false },
  };
  const pml = { version: 1, permissions, mcpServers: { far: { type: "http", url: mcp.url } } };
  await using ws = await makeAttackWorkspace({ pml });
  await Deno.writeTextFile(`${ws.home}/config.yaml`, JSON.stringify({ identities }));
  assert.equal((await signIn(ws, "far")).code, 0);
  await using served = await servePml(ws);
  for (const era of ERAS) {
    for (const [name, token] of Object.entries(tokens)) {
      const before = mcp.tokens.length;
      await using one = await connectHttp({ url: served.url, token }, {
        era,
        capabilities: ABLE,
        elicit: () => assert.fail("the question is the person's"),
      });
      const said = await one.client.callTool({ name: "call", arguments: { tool: "far:meta" } });
      const sent = mcp.tokens.slice(before).filter((token) => token !== undefined);
      assert.deepEqual([said.isError === true, sent.length > 0], [
        name === "poor",
        name === "rich",
      ], JSON.stringify(said.content));
    }
  }
  server.assertClean();
});
