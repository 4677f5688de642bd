/**
 * Servers of HTTP+SSE that send false addresses, break, flood, or ask for keys: the reports of PML,
 * and data that it never sends.
 *
 * @module
 */

import assert from "node:assert/strict";
import { stream } from "../../src/servers/http/_stage_test.ts";
import type { Era } from "../kit/json_rpc.ts";
import { PRIVATE_HOSTS } from "../kit/private_hosts.ts";
import { rssOf } from "../kit/procwatch.ts";
import { EACH_WAY } from "../kit/raw_stdio.ts";
import { assertNoLeak } from "../kit/sinks.ts";
import { FullSse, type SseScript, SseServer, type SseStream } from "../kit/sse_server.ts";
import { until } from "../kit/wait.ts";
import { call, toldCode } from "./evil_servers.ts";
import { assertServes, endWell, textOf } from "./oracles.ts";
import { makeScene, type SceneOptions } from "./stage.ts";

const MB = 1024 * 1024;
const [ONE, TWO] = ["key-of-one-0123456789", "key-of-two-0123456789"];
const ACCEPTED = { status: 202 };

/** Creates a scene with servers of HTTP+SSE, by their addresses, each with the key of its name. */
function sceneOf(
  { era, servers, ...options }: SceneOptions & {
    readonly era?: Era;
    readonly servers: Readonly<Record<string, string>>;
  },
) {
  const key = (name: string) => name === "two" ? "TWO_KEY" : "ONE_KEY";
  const mcpServers = Object.fromEntries(
    Object.entries(servers).map(([name, url]) => [
      name,
      { type: "sse", url, headers: { Authorization: `Bearer \${${key(name)}}` } },
    ]),
  );
  const allow = ["filesystem:*", ...Object.keys(servers).map((name) => `${name}:*`)];
  const pml = { version: 1, permissions: { allow }, mcpServers };
  return makeScene({ era, env: { ONE_KEY: ONE, TWO_KEY: TWO }, pml, ...options });
}

/** Returns a stream that names several endpoints. */
function endpointsOf(endpoints: readonly string[]): SseScript {
  return ({ method, path }) => {
    if (method !== "GET") return undefined;
    const at = Number(path.split("=")[1]);
    return stream([`event: endpoint\ndata: ${endpoints[at]}\n\n`], { stays: true });
  };
}

Deno.test("no message and no key leaves the origin of a stream (NI4, SX1)", async () => {
  await using other = new SseServer();
  const endpoints: string[] = [];
  await using server = new SseServer(endpointsOf(endpoints));
  const { host, port } = new URL(server.url);
  endpoints.push(
    other.url,
    `//127.0.0.1:${other.port}/messages`,
    `/\\127.0.0.1:${other.port}/messages`,
    `https://${host}/messages`,
    `http://localhost:${port}/messages`,
    `http://user:secret@${host}/messages`,
    `http://${host}@127.0.0.1:${other.port}/`,
    `ws://${host}/messages`,
    "http://",
    `/messages?${"x".repeat(MB)}`,
  );
  endpoints.push(...PRIVATE_HOSTS.map((name) => `http://${name}:${other.port}/messages`));
  endpoints.push(...PRIVATE_HOSTS.map((name) => `https://${name}/messages`));
  const servers = Object.fromEntries(
    endpoints.map((_, at) => [`s${at}`, `${server.url}?at=${at}`]),
  );
  await using scene = await sceneOf({ era: "2025-11-25", door: "stdio", servers });
  const { ws, pml } = scene;
  for (const [at, endpoint] of endpoints.entries()) {
    const response = await call(pml, `s${at}:t`);
    assert.equal(toldCode(response), "UPSTREAM_PROTOCOL", endpoint.slice(0, 99));
    assert.match(textOf(response), /its own origin|its address for messages/);
    assert.match(textOf(response), /Nothing was sent there/);
  }
  assert.deepEqual(other.came, []);
  assert.ok(server.came.every(({ method }) => method === "GET"));
  await endWell(ws, pml, { secrets: [ONE, TWO] });
});

Deno.test("with any defect of a stream, its calls fail with the reason and others continue", async () => {
  await using away = new SseServer();
  await using open = new AsyncDisposableStack();
  const kinds = Object.entries(hostileTo(away.url)).map(([name, { code, script, begins }]) => {
    const server = open.use(new SseServer(script));
    if (begins !== undefined) server.begins = () => begins;
    return { name, code, url: server.url };
  });
  const servers = Object.fromEntries(kinds.map(({ name, url }) => [name, url]));
  const limits = { start_ms: 2_500, result_bytes: MB };
  await using scene = await sceneOf({ era: "2026-07-28", door: "http", servers, limits });
  const { ws, pml } = scene;
  const messages = await Promise.all(kinds.map(async ({ name, code }) => {
    const response = await call(pml, `${name}:t`);
    assert.equal(toldCode(response), code, `${name}: ${textOf(response)}`);
    return textOf(response);
  }));
  await assertServes(pml);
  assert.ok(messages.every((text) => text.length < 3_000));
  assert.deepEqual(away.came, []);
  await endWell(ws, pml, { secrets: [ONE] });
});

/** A server that breaks the protocol, and the report about it. */
interface Hostile {
  readonly code: string;
  readonly script?: SseScript;
  /** The beginning of its streams. */
  readonly begins?: string;
}

function onCall(act: (own: SseStream, id: unknown) => void): SseScript {
  return ({ message, stream: own }) => {
    if (message.method !== "tools/call" || own === undefined) return undefined;
    act(own, message.id);
    return new Response(null, ACCEPTED);
  };
}

/** Answers all calls, or all requests, with a status. */
function refusing(status: number, { location, isAll = false }: {
  readonly location: string;
  readonly isAll?: boolean;
}): SseScript {
  return ({ message }) =>
    isAll || message.method === "tools/call"
      ? new Response("no", { status, headers: { location } })
      : undefined;
}

function hostileTo(location: string): Readonly<Record<string, Hostile>> {
  const large = { content: [{ type: "text", text: "x".repeat(2 * MB) }] };
  const stray = `data: {"jsonrpc":"2.0","id":"x","result":{}}\n\n`;
  const endless = (own: SseStream) => {
    own.write("data: ");
    for (let at = 0; at < 80; at++) own.write("y".repeat(MB));
  };
  const down = "UPSTREAM_DOWN";
  const broken = "UPSTREAM_PROTOCOL";
  const to = { location };
  return {
    silent: { code: "TIMED_OUT", begins: "" },
    comments: { code: "TIMED_OUT", begins: ": still here\n\n".repeat(10_000) },
    others: { code: "TIMED_OUT", begins: "data: {}\n\n".repeat(10_000) },
    post500: { code: down, script: refusing(500, to) },
    post503: { code: down, script: refusing(503, to) },
    post404: { code: down, script: refusing(404, to) },
    post401: { code: "LOGIN_REQUIRED", script: refusing(401, to) },
    post307: { code: broken, script: refusing(307, to) },
    post415: { code: broken, script: refusing(415, to) },
    get401: { code: "LOGIN_REQUIRED", script: refusing(401, { location, isAll: true }) },
    get302: { code: broken, script: refusing(302, { location, isAll: true }) },
    giant: {
      code: "RESULT_TOO_LARGE",
      script: onCall((own, id) => own.say({ id, result: large })),
    },
    last: { code: "RESULT_TOO_LARGE", script: onCall((own, id) => own.say({ result: large, id })) },
    endless: { code: broken, script: onCall(endless) },
    flood: { code: broken, script: onCall((own) => own.write(stray.repeat(10_001))) },
    cut: { code: down, script: onCall((own) => own.end()) },
  };
}

Deno.test("an endless stream of comments uses no memory, and answers get through it", async () => {
  await using server = new SseServer(async ({ message, stream: own }) => {
    if (message.method !== "tools/call" || own === undefined) return undefined;
    const comment = `: ${"c".repeat(300_000)}\n`;
    for (let at = 0; at < 1_000; at++) {
      await until(() => own.room > 0 || own.isLeft);
      own.write(comment);
    }
    own.say({ id: message.id, result: { content: [{ type: "text", text: "through" }] } });
    return new Response(null, ACCEPTED);
  });
  // The test measures its memory.
  await using scene = await sceneOf({ ownProcess: true, servers: { noisy: server.url } });
  const { ws, pml } = scene;
  const before = await rssOf(pml.pid);
  const said = call(pml, "noisy:t");
  await assertServes(pml);
  assert.equal(textOf(await said), "through");
  const grown = await rssOf(pml.pid) - before;
  assert.ok(grown < 200 * MB, `PML grew by ${grown}`);
  await endWell(ws, pml);
});

Deno.test("keys reach their own stream only, over calls, retries and reconnects (SX1)", async () => {
  const breaking = (): SseScript => {
    let calls = 0;
    return ({ message, stream }) => {
      if (message.method !== "tools/call" || ++calls % 20 !== 0) return undefined;
      if (calls % 40 === 0) return new Response("no such session", { status: 404 });
      stream?.end();
      return new Response(null, ACCEPTED);
    };
  };
  await using one = new SseServer(breaking());
  await using two = new SseServer(breaking());
  await using scene = await sceneOf({ door: "http", servers: { one: one.url, two: two.url } });
  const { ws, pml } = scene;
  const codes = new Set<string | undefined>();
  for (let at = 0; at < 25; at++) {
    const told = await Promise.all(
      Array.from({ length: 20 }, (_, index) => call(pml, `${index % 2 ? "one" : "two"}:t`)),
    );
    for (const response of told) codes.add(toldCode(response));
  }
  assert.deepEqual(codes, new Set([undefined, "UPSTREAM_DOWN"]));
  assert.ok(one.streams.length > 3 && two.streams.length > 3);
  for (const [server, own, other] of [[one, ONE, TWO], [two, TWO, ONE]] as const) {
    for (const { headers } of server.came) {
      assert.equal(headers.get("authorization"), `Bearer ${own}`);
      assertNoLeak(other, { headers: JSON.stringify([...headers]) });
    }
  }
  await endWell(ws, pml, { secrets: [ONE, TWO] });
});

Deno.test("a key that no header can contain is reported by its variable, and nothing is sent (SX6)", async () => {
  for (const value of [`${ONE}\n`, `${ONE}\u20ac`]) {
    await using server = new SseServer();
    const env = { ONE_KEY: value };
    await using scene = await sceneOf({ door: "stdio", servers: { one: server.url }, env });
    const { ws, pml } = scene;
    const response = await call(pml, "one:t");
    assert.match(textOf(response), /^(KEY_MISSING|CONFIG_INVALID)/);
    assert.match(textOf(response), /ONE_KEY/);
    assert.deepEqual(server.came, []);
    await endWell(ws, pml, { secrets: [ONE] });
  }
});

for (const { door, era, on } of EACH_WAY) {
  Deno.test(`a server behind a stream that asks for a secret is marked, on ${on} (SX13)`, async () => {
    await using server = new FullSse();
    const seen: string[] = [];
    await using scene = await sceneOf({
      ...{ door, era },
      servers: { full: server.url },
      capabilities: { elicitation: { form: {} } },
      answer: (_, params) => {
        seen.push(String(params.message));
        return { action: "decline" };
      },
    });
    await call(scene.pml, "full:ask_secret");
    assert.match(seen[0] ?? "", /^Server full asks: Type .*\n\(PML notes: .*secret/);
    assert.equal((await scene.pml.close()).code, 0);
  });
}

Deno.test("calls beyond the limit are refused at once, and those of a stream finish (RX5)", async () => {
  const held: (() => void)[] = [];
  let isHeld = true;
  await using server = new SseServer(({ message, stream }) => {
    if (message.method !== "tools/call" || !isHeld) return undefined;
    const result = { content: [{ type: "text", text: "done" }] };
    held.push(() => stream?.say({ id: message.id, result }));
    return new Response(null, ACCEPTED);
  });
  await using scene = await sceneOf({
    door: "http",
    servers: { one: server.url },
    limits: { concurrent_calls: 64, queued_calls: 64 },
  });
  const { ws, pml } = scene;
  await pml.callTool("search", { query: "one" });
  const ended: string[] = [];
  const asked = Array.from({ length: 1_000 }, async () => {
    const { result } = await pml.callTool("one__t", {}, { ms: 60_000 });
    ended.push(textOf({ result }).split(":", 1)[0] ?? "");
  });
  const all = Promise.all(asked);
  await Promise.race([all, until(() => ended.length === 1_000 - 128, 60_000)]);
  assert.deepEqual(new Set(ended), new Set(["OVERLOADED"]), "the refusals waited");
  isHeld = false;
  for (const answer of held) answer();
  await all;
  assert.equal(ended.filter((one) => one === "done").length, 128);
  await endWell(ws, pml);
});
