/**
 * Two processes of one PML behind nginx, of which one is killed during questions and calls: nothing
 * runs twice, and no accepted call is lost.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ERAS } from "./kit/json_rpc.ts";
import { connectHttp, type TestServer } from "./kit/pml_serve.ts";
import { type Nginx, startNginx } from "./kit/nginx.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";
import {
  type Answered,
  callAt,
  openIn,
  ranIn,
  sceneryOf,
  stateOf,
  type Two,
  twoOf,
  YES,
} from "./replicas_scene.ts";

type Place = Pick<TestServer, "url" | "token">;

const inputResponses = YES;

interface Scene extends Two {
  readonly nginx: Nginx;
  /** The address of nginx, with a token. */
  readonly at: Pick<TestServer, "url" | "token">;
}

async function behindNginx(ws: Workspace): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const { one, two } = stack.use(await twoOf(ws));
  const nginx = stack.use(await startNginx(join(ws.root, "nginx"), [one.url, two.url]));
  const all = stack.move();
  const at = { url: nginx.url, token: one.token };
  return { one, two, nginx, at, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Sends an answer, and repeats it until it gets a result. */
async function answered(
  { at, first = at }: Record<"at", Place> & Partial<Record<"first", Place>>,
  tool: string,
  more: Parameters<typeof callAt>[2],
): Promise<Answered> {
  let said: Answered | undefined;
  let place = first;
  await until(async () => {
    said = await callAt(place, tool, more).catch(() => undefined);
    place = at;
    return said?.status === 200 || said?.status === 400;
  });
  assert.ok(said !== undefined);
  return said;
}

Deno.test("answers reach any process behind nginx, and each counts once", async () => {
  await using ws = await sceneryOf();
  await using scene = await behindNginx(ws);
  const { at } = scene;
  const texts = Array.from({ length: 12 }, (_, index) => `call ${index}`);
  const said = await Promise.all(texts.map(async (text) => {
    const args = { text };
    const requestState = await stateOf(at, "note:add", args);
    const twice = await Promise.all(
      [0, 1].map(() => callAt(at, "note:add", { args, requestState, inputResponses })),
    );
    return twice.filter((one) => one.text.includes(`added ${text}`)).length;
  }));
  assert.deepEqual(said, texts.map(() => 1));
  assert.deepEqual([...await ranIn(ws)].sort(), texts.toSorted());
  // The answer to a server's question finds its process, wherever nginx sends it.
  for (let round = 0; round < 4; round++) {
    const { result } = await callAt(at, "asks:ask_name");
    const [key = ""] = Object.keys(result?.inputRequests ?? {});
    const answer = { [key]: { action: "accept", content: { name: "Ada" } } };
    const requestState = result?.requestState;
    const { text } = await callAt(at, "asks:ask_name", { requestState, inputResponses: answer });
    assert.match(text, /Ada/);
  }
  // Sessions, too: nginx sends their requests to both.
  await using session = await connectHttp(at);
  for (let round = 0; round < 6; round++) {
    assert.ok((await session.client.listTools()).tools.length > 0);
  }
});

for (const era of ERAS) {
  Deno.test(`a client of ${era} behind nginx is asked, and its call runs once`, async () => {
    await using ws = await sceneryOf();
    await using scene = await behindNginx(ws);
    const texts: string[] = [];
    await using connected = await connectHttp(scene.at, {
      era,
      elicit: ({ message }) => {
        texts.push(message);
        const [key, value] = message.startsWith("PML asks") ? ["answer", "Yes"] : ["name", "Ada"];
        return { action: "accept", content: { [`${key}`]: `${value}` } };
      },
    });
    const call = async (tool: string, args: object) => {
      const params = { name: "call", arguments: { tool, arguments: args } };
      return JSON.stringify(await connected.client.callTool(params));
    };
    for (let round = 0; round < 4; round++) {
      assert.match(await call("note:add", { text: `${round}` }), /added/);
      assert.match(await call("asks:ask_name", {}), /Ada/);
    }
    assert.equal(texts.length, 8);
    assert.deepEqual(await ranIn(ws), ["0", "1", "2", "3"]);
  });
}

Deno.test("one of two processes is killed during questions and calls: nothing runs twice, nothing is lost", async () => {
  await using ws = await sceneryOf();
  await using scene = await behindNginx(ws);
  const { at, one, two } = scene;
  const asked = async (text: string, tool: string, more: object = {}) => {
    const args = { text, ...more };
    return { text, tool, args, requestState: await stateOf(at, tool, args) };
  };
  const running = await Promise.all(
    Array.from(
      { length: 8 },
      (_, index) => asked(`running ${index}`, "note:add_slowly", { path: "go.txt" }),
    ),
  );
  const waiting = await Promise.all(
    Array.from({ length: 8 }, (_, index) => asked(`waiting ${index}`, "note:add")),
  );
  const finish = async ({ text, tool, ...more }: typeof running[number], first: Place = at) => ({
    text,
    said: (await answered({ at, first }, tool, { ...more, inputResponses })).text,
  });
  // Some go to each process, wherever nginx sends the others.
  const first = running.map((call, index) => finish(call, [one, two][index]));
  await until(async () => (await ranIn(ws)).length === running.length);
  // Ends are written without a wait.
  await until(async () => (await openIn(ws)).length === running.length);
  one.kill("SIGKILL");
  // Pending questions can be answered at the other process.
  const second = await Promise.all(waiting.map((call) => finish(call)));
  for (const { text, said } of second) assert.match(said, new RegExp(`added ${text}`));
  await writeFile(ws.file("go.txt"), "");
  const over = await Promise.all(first);
  const went = over.filter(({ said }) => said.includes("went"));
  const lost = over.filter(({ said }) => /UPSTREAM_DOWN[^]*"may_have_run":true/.test(said));
  assert.equal(went.length + lost.length, running.length, JSON.stringify(over));
  assert.ok(went.length > 0 && lost.length > 0, `${went.length} went, ${lost.length} are lost`);
  const all = [...running, ...waiting].map(({ text }) => text);
  assert.deepEqual([...await ranIn(ws)].sort(), all.toSorted(), "each ran once");
  // The journal has a start without an end for each call that was killed, and for no other.
  await until(async () => (await openIn(ws)).length === lost.length);
  assert.ok((await openIn(ws)).every((tool) => tool === "note:add_slowly"));
});

Deno.test("a session whose process was killed ends, and its client starts another one behind nginx", async () => {
  await using ws = await sceneryOf();
  await using scene = await behindNginx(ws);
  const { at, one, two } = scene;
  await using direct = await one.connect();
  const sessionId = direct.transport.sessionId ?? "";
  const list = (method = "tools/list") =>
    fetch(at.url, {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method }),
      headers: {
        authorization: `Bearer ${at.token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-session-id": sessionId,
        "mcp-protocol-version": "2025-11-25",
      },
    });
  for (let round = 0; round < 4; round++) {
    const response = await list();
    assert.match(await response.text(), /"tools":/);
  }
  one.kill("SIGKILL");
  await one.ended;
  const response = await list();
  await response.text();
  assert.equal(response.status, 404);
  await using again = await connectHttp(at);
  assert.ok((await again.client.listTools()).tools.length > 0);
  assert.equal(
    (await two.fetch({}, "/health").then((one) => one.text().then(() => one))).status,
    200,
  );
});
