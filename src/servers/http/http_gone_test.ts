import assert from "node:assert/strict";
import { freePort } from "../../../tests/kit/free_port.ts";
import { TcpSink } from "../../../tests/kit/sinks.ts";
import { until } from "../../../tests/kit/wait.ts";
import { Cancellation } from "../../core/cancellation.ts";
import { failed, Scripted, Stage } from "./_stage_test.ts";

const KEY = "key-of-the-person-1234";
const DISCOVER = "server/discover";
const DONE = [{ type: "text", text: "done" }];

Deno.test("a connection that hangs is closed, and the next call opens another (SP2)", async () => {
  let isHung = true;
  let isListed = false;
  await using server = new Scripted(({ message, signal }) => {
    const { method } = message;
    if (!isHung || !isListed || method !== "tools/call" && method !== DISCOVER) return undefined;
    const { promise, resolve } = Promise.withResolvers<Response>();
    signal.addEventListener("abort", () => resolve(new Response()));
    return promise;
  });
  await using stage = await Stage.at(server.url);
  // On a busy machine the handshake alone may take as long as the call may.
  await stage.list("tools");
  isListed = true;
  const discovered = () => server.methods.filter((method) => method === DISCOVER).length;
  const cancellation = Cancellation.of(AbortSignal.timeout(100));
  const call = stage.call("t", {}, { cancellation });
  await assert.rejects(call, { name: "TimeoutError" });
  // It replaces the ping of older revisions.
  await until(() => discovered() === 2);
  isHung = false;
  await until(async () => {
    assert.deepEqual((await stage.call("t")).content, DONE);
    return discovered() === 3;
  });
});

Deno.test("an unreachable server fails at once after the first call, until it is back", async () => {
  const port = freePort();
  const server = new Scripted(undefined, { port });
  const { url } = server;
  await server[Symbol.asyncDispose]();
  await using stage = await Stage.at(url, { server: { headers: { Authorization: KEY } } });
  const first = await failed(stage.call("t"));
  assert.deepEqual([first.code, first.detail?.may_have_run], ["UPSTREAM_DOWN", false]);
  assert.match(first.message, /connection refused/);
  assert.doesNotMatch(JSON.stringify(first) + first.message, /of-the-/);
  const all = await Promise.all([1, 2, 3].map(() => failed(stage.call("t"))));
  for (const { message } of all) assert.equal(message, first.message);
  await using back = new Scripted(undefined, { port });
  await until(async () => {
    const result = await stage.call("t").catch(() => undefined);
    return result?.content !== undefined;
  });
  assert.equal(back.methods.filter((method) => method === "tools/call").length, 1);
});

Deno.test("calls do not wait for a stopped server, and none is sent twice (SP3)", async () => {
  const port = freePort();
  const server = new Scripted(undefined, { port });
  await using stage = await Stage.at(server.url);
  await stage.call("t");
  await server[Symbol.asyncDispose]();
  const gone = await failed(stage.call("t"));
  assert.equal(gone.code, "UPSTREAM_DOWN");
  await using back = new Scripted(undefined, { port });
  await until(async () => (await stage.call("t").catch(() => undefined)) !== undefined);
  const calls = back.methods.filter((method) => method === "tools/call");
  assert.equal(calls.length, 1);
});

Deno.test("a server that accepts connections and is silent delays only the first call", async () => {
  await using hole = new TcpSink();
  const url = `http://127.0.0.1:${hole.port}/mcp`;
  await using stage = await Stage.at(url, { limits: { startMs: 1_500 } });
  assert.equal((await failed(stage.call("t"))).code, "TIMED_OUT");
  const since = performance.now();
  const calls = Array.from({ length: 10 }, () => failed(stage.call("t")));
  for (const { code } of await Promise.all(calls)) assert.equal(code, "TIMED_OUT");
  assert.ok(performance.now() - since < 1_400, "they waited for another start");
  await until(() => hole.received.length >= 2);
  assert.equal(hole.received.length, 2, "one look was made for all");
});
