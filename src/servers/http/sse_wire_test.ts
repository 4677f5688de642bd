import assert from "node:assert/strict";
import { SseServer } from "../../../tests/kit/sse_server.ts";
import { until } from "../../../tests/kit/wait.ts";
import { Cancellation } from "../../core/cancellation.ts";
import { PmlError } from "../../core/errors.ts";
import { failed, Scripted, Stage } from "./_stage_test.ts";
import type { HttpServersHost, HttpValues } from "./http_options.ts";
import { TransportChoice } from "./transports.ts";

const DONE = [{ type: "text", text: "done" }];
const KEY = "key-of-the-person-1234";
const SSE = { server: { isSse: true } };

Deno.test("a server of HTTP+SSE gets its headers at both of its addresses", async () => {
  await using server = new SseServer();
  const headers = { Authorization: KEY };
  const keyHeaders = { "x-pml-key-a": KEY };
  await using stage = await Stage.at(server.url, { server: { isSse: true, headers, keyHeaders } });
  assert.deepEqual((await stage.call("t")).content, DONE);
  assert.deepEqual(server.methods, [
    "GET",
    "initialize",
    "notifications/initialized",
    "ping",
    "tools/call",
  ]);
  for (const { headers, message } of server.came) {
    assert.equal(headers.get("authorization"), KEY);
    const key = message.method === "tools/call" ? KEY : null;
    assert.equal(headers.get("x-pml-key-a"), key, "a key goes with a call alone");
    assert.equal(headers.get("mcp-session-id"), null);
  }
  assert.equal(server.came[1]?.path, "/messages?session=0");
  await stage.upstreams[Symbol.asyncDispose]();
  await until(() => server.streams[0]?.isLeft === true);
});

Deno.test("a notification that was just sent arrives before its stream is closed", async () => {
  const method = "notifications/acme/note";
  await using server = new SseServer();
  const stage = await Stage.at(server.url, SSE);
  await stage.call("t");
  await stage.call("t", {}, { method, isNotification: true });
  await stage[Symbol.asyncDispose]();
  assert.ok(server.methods.includes(method), `${server.methods}`);
});

Deno.test("the other transport is tried once, and the working one is remembered", async () => {
  for (const status of [400, 404, 405, 415]) {
    await using server = new SseServer(({ method, path }) =>
      method === "POST" && path === "/sse" ? new Response("<p>no", { status }) : undefined
    );
    await using stage = await Stage.at(server.url);
    await Promise.all([1, 2, 3].map(() => stage.call("t")));
    const begins = ["server/discover", "initialize", "GET", "initialize"];
    assert.deepEqual(server.methods.slice(0, 4), begins);
    server.streams[0]?.end();
    await until(async () => {
      await stage.call("t").catch(() => {});
      return server.streams.length === 2;
    });
    assert.equal(server.came.filter(({ path }) => path === "/sse").length, 4, "two POST, two GET");
  }
  await using newest = new Scripted();
  await using stage = await Stage.at(newest.url, SSE);
  await stage.call("t");
  await stage.call("t");
  assert.deepEqual(newest.methods, ["GET", "server/discover", "tools/call", "tools/call"]);
});

Deno.test("the transport of an address is stored for other processes, until it is refused", async () => {
  const home = await Deno.makeTempDir();
  const no = new PmlError("UPSTREAM_PROTOCOL", "no");
  const server = { name: "far", url: "https://far.example/sse" } as HttpValues; // all that is used
  const opened = (process: object) => new TransportChoice(server, process as HttpServersHost);
  const first = { home };
  assert.equal(opened(first).isSse, false);
  opened(first).useOtherTransport(no);
  opened(first).store({ isSse: true });
  const next = opened({ home });
  assert.equal(next.isSse, true);
  next.useOtherTransport(no);
  assert.equal(opened({ home }).isSse, false);
  await Deno.remove(home, { recursive: true });
});

Deno.test("a notification whose response does not end delays no call", async () => {
  const open = () => new Response(new ReadableStream(), { status: 202 });
  const isNotice = ({ message }: { readonly message: object }) =>
    "method" in message && message.method === "notifications/initialized";
  await using sse = new SseServer((came) => isNotice(came) ? open() : undefined);
  await using http = new Scripted((came) => isNotice(came) ? open() : undefined, { isOlder: true });
  for (const { url } of [sse, http]) {
    await using stage = await Stage.at(url, { server: { isSse: url === sse.url } });
    const cancellation = Cancellation.of(AbortSignal.timeout(10_000));
    const said = await stage.call("t", {}, { cancellation }).catch(String);
    assert.deepEqual(Object(said).content, DONE, `${said}`);
  }
});

Deno.test("a call waits for the end of the handshake, and closes its HTTP request when it is answered", async () => {
  let isReady = false;
  let isLeft = false;
  await using server = new SseServer(async ({ message: { id, method }, stream }) => {
    if (method === "notifications/initialized") {
      await new Promise((resolve) => setTimeout(resolve, 100));
      isReady = true;
    }
    if (method !== "tools/call") return undefined;
    if (!isReady) return new Response("too early", { status: 409 });
    stream?.say({ id, result: { content: DONE } });
    return new Response(new ReadableStream({ cancel: () => void (isLeft = true) }));
  });
  await using stage = await Stage.at(server.url, SSE);
  assert.deepEqual((await stage.call("t")).content, DONE);
  await until(() => isLeft);
});

Deno.test("an answer to the server during the handshake does not stop the handshake", async () => {
  const answer = Promise.withResolvers<void>();
  await using server = new SseServer(async ({ message: { id, method }, stream }) => {
    if (method === "initialize") {
      stream?.say({ id: "during", method: "ping" });
      await answer.promise;
    }
    if (id !== "during") return undefined;
    answer.resolve();
    await new Promise((resolve) => setTimeout(resolve, 100));
    return new Response(null, { status: 202 });
  });
  await using stage = await Stage.at(server.url, SSE);
  const cancellation = Cancellation.of(AbortSignal.timeout(10_000));
  const outcome = await stage.call("t", {}, { cancellation }).catch(String);
  assert.deepEqual(Object(outcome).content, DONE, `${outcome}`);
  const { methods } = server;
  assert.ok(methods.includes("notifications/initialized"), `${methods}`);
  assert.ok(methods.indexOf("notifications/initialized") < methods.indexOf("tools/call"));
});

Deno.test("an address of neither transport is reported with its status, for each definition", async () => {
  for (const isSse of [false, true]) {
    let isWrong = true;
    await using server = new SseServer(() =>
      isWrong ? new Response("nothing", { status: 404 }) : undefined
    );
    await using stage = await Stage.at(server.url, { server: { isSse } });
    for (let at = 0; at < 3; at++) {
      const error = await failed(stage.call("t"));
      assert.equal(error.code, "UPSTREAM_PROTOCOL");
      assert.match(error.message, /the status 404/);
    }
    isWrong = false;
    await until(async () => (await stage.call("t").catch(() => undefined)) !== undefined);
  }
});

Deno.test("no message and no key is sent to an unusable endpoint, and the error has the reason", async () => {
  await using other = new SseServer();
  const { port } = other;
  await using server = new SseServer();
  const own = new URL(server.url);
  const origin = /its own origin$/;
  const credentials = /user name or a password$/;
  const url = /not a valid URL/;
  const wrong: readonly (readonly [endpoint: string, reason: RegExp])[] = [
    [other.url, origin],
    [`//127.0.0.1:${port}/messages`, origin],
    [`/\\127.0.0.1:${port}/messages`, origin],
    [`https://${own.host}/messages`, origin],
    [`http://localhost:${own.port}/messages`, origin],
    [`http://user:secret@${own.host}/messages`, credentials],
    [`http://user@${own.host}/messages`, credentials],
    [`http://${own.host}@127.0.0.1:${port}/messages`, credentials],
    ["http://", url],
    ["javascript:alert(1)", url],
    [`ws://${own.host}/messages`, url],
    [`/messages?${"x".repeat(1_000_000)}`, /more than 8192 bytes$/],
  ];
  for (const [endpoint, reason] of wrong) {
    await using stage = await Stage.at(server.url, {
      server: { isSse: true, headers: { Authorization: KEY }, keyHeaders: { "x-pml-key-a": KEY } },
    });
    server.begins = () => `event: endpoint\ndata: ${endpoint}\n\n`;
    const error = await failed(stage.call("t"));
    assert.equal(error.code, "UPSTREAM_PROTOCOL", endpoint.slice(0, 80));
    assert.match(error.message, /^Cannot use "far": it/);
    assert.match(error.message, reason, endpoint.slice(0, 80));
    assert.equal(error.detail?.may_have_run, false);
    assert.ok(error.message.length < 400);
  }
  assert.ok(server.came.every(({ method }) => method === "GET"));
  assert.deepEqual(other.came, []);
});

Deno.test("only the first endpoint counts, exactly as it is written", async () => {
  for (const to of ["messages", "./messages", "/messages", "$/messages", " $/messages "]) {
    await using server = new SseServer();
    const { origin } = new URL(server.url);
    server.begins = (session) =>
      `: hello\r\n\r\nevent: other\r\ndata: x\r\n\r\nevent: endpoint\r\ndata: ` +
      `${to.replace("$", origin).trimEnd()}?session=${session}\r\n\r\n` +
      `event: endpoint\ndata: http://127.0.0.1:1/\n\n`;
    await using stage = await Stage.at(server.url, SSE);
    const said = await stage.call("t").then(({ content }) => content, String);
    assert.deepEqual(said, DONE, to);
  }
});

Deno.test("the end of a stream is reported, and the next call opens another", async () => {
  for (const error of [undefined, new Error("it is cut on purpose")]) {
    await using server = new SseServer(({ message, stream }) => {
      const { name } = (message.params ?? {}) as { name?: string };
      if (name !== "held") return undefined;
      stream?.end(error);
      return new Response(null, { status: 202 });
    });
    await using stage = await Stage.at(server.url, SSE);
    const down = await failed(stage.call("held"));
    assert.deepEqual([down.code, down.detail?.may_have_run], ["UPSTREAM_DOWN", true]);
    assert.deepEqual((await stage.call("t")).content, DONE);
    assert.equal(server.methods.filter((method) => method === "tools/call").length, 2);
    assert.equal(server.streams.length, 2);
  }
});

Deno.test("a refused message fails alone, unless the session is lost", async () => {
  const statuses = new Map<string, [code: string, mayHaveRun: boolean]>([
    ["500", ["UPSTREAM_DOWN", true]],
    ["401", ["LOGIN_REQUIRED", false]],
    ["307", ["UPSTREAM_PROTOCOL", false]],
    ["415", ["UPSTREAM_PROTOCOL", false]],
    ["429", ["UPSTREAM_DOWN", false]],
  ]);
  await using server = new SseServer(({ message }) => {
    const { name } = (message.params ?? {}) as { name?: string };
    const headers = { location: "http://127.0.0.1:1/" };
    return statuses.has(name ?? "")
      ? new Response("", { status: Number(name), headers })
      : undefined;
  });
  await using stage = await Stage.at(server.url, SSE);
  for (const [name, [code, mayHaveRun]] of statuses) {
    const error = await failed(stage.call(name));
    assert.deepEqual([error.code, error.detail?.may_have_run], [code, mayHaveRun], name);
  }
  const before = server.streams.length;
  assert.ok(before <= 2, "a refusal opens no stream each time");
  // A call of a forgotten session is sent once more, in a new session.
  server.streams.at(-1)?.end();
  assert.deepEqual((await stage.call("t")).content, DONE);
});

Deno.test("a session that the server of a stream forgot is replaced, once for each call", async () => {
  let isLost = true;
  await using server = new SseServer(({ message }) => {
    if (message.method !== "tools/call" || !isLost) return undefined;
    isLost = false;
    return new Response("Could not find session", { status: 404 });
  });
  await using stage = await Stage.at(server.url, SSE);
  assert.deepEqual((await stage.call("t")).content, DONE);
  assert.equal(server.streams.length, 2);
});

Deno.test("only JSON-RPC answers on a stream count", async () => {
  await using server = new SseServer(({ message, stream }) => {
    if (message.method !== "tools/call") return undefined;
    const { id } = message;
    const forged = { content: [{ type: "text", text: "forged" }] };
    stream?.write("\ndata\n\n: nothing\n\nevent: ping\ndata: {}\n\ndata: {not json\n\n");
    for (const other of [1, "1", null, "x", {}, `${id}0`]) {
      stream?.say({ id: other, result: forged });
    }
    stream?.write(`event: other\ndata: ${JSON.stringify({ id, result: forged })}\n\n`);
    const { progressToken } = (message.params as { _meta: { progressToken: string } })._meta;
    stream?.say({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    stream?.write(`event:message\ndata: ${JSON.stringify({ id, result: { content: DONE } })}\n\n`);
    stream?.say({ id, result: forged });
    return new Response("data: {}\n\n", { status: 200 });
  });
  await using stage = await Stage.at(server.url, SSE);
  const heard: unknown[] = [];
  const onProgress = ({ progress }: { progress: unknown }) => void heard.push(progress);
  assert.deepEqual((await stage.call("t", {}, { client: { onProgress } })).content, DONE);
  assert.deepEqual(heard, [1]);
});

Deno.test("a cancelled call frees its request, and the server is notified", async () => {
  const gone: string[] = [];
  await using server = new SseServer(({ message, signal }) => {
    if (message.method !== "tools/call") return undefined;
    signal.addEventListener("abort", () => gone.push("gone"));
    return new Promise(() => {});
  });
  await using stage = await Stage.at(server.url, SSE);
  const cancellation = new Cancellation();
  const call = stage.call("t", {}, { cancellation });
  await until(() => server.methods.includes("tools/call"));
  cancellation.cancel(new PmlError("CANCELLED", "Cannot finish: no more"));
  assert.equal((await failed(call)).code, "CANCELLED");
  await until(() => server.methods.includes("notifications/cancelled"));
  await until(() => gone.length === 1);
  await stage.list("tools");
});

Deno.test("a message over the limits ends its request or its stream, and no other", async () => {
  await using server = new SseServer(({ message, stream }) => {
    const { name } = (message.params ?? {}) as { name?: string };
    const large = (size: number) => ({ content: [{ type: "text", text: "x".repeat(size) }] });
    if (name === "result") stream?.say({ id: message.id, result: large(34_000_000) });
    else if (name === "fits") stream?.say({ result: large(20_000_000), id: message.id });
    else if (name === "message") stream?.write(`data: ${"y".repeat(50_000_000)}`);
    else if (name === "held") return new Response(null, { status: 202 });
    else return undefined;
    return new Response(null, { status: 202 });
  });
  const limits = { lineBytes: 40_000_000 };
  await using stage = await Stage.at(server.url, { ...SSE, limits });
  const held = failed(stage.call("held"));
  assert.equal(String((await stage.call("fits")).content[0]?.text).length, 20_000_000);
  assert.equal((await failed(stage.call("result"))).code, "RESULT_TOO_LARGE");
  assert.equal(server.streams.length, 1, "the stream goes on");
  const error = await failed(stage.call("message"));
  assert.equal(error.code, "UPSTREAM_PROTOCOL");
  assert.match(error.message, /over 40000000 bytes/);
  assert.equal((await held).code, "UPSTREAM_PROTOCOL");
  assert.deepEqual((await stage.call("t")).content, DONE);
});

Deno.test("a stream that names no endpoint, or contains only comments, is closed", async () => {
  for (const begins of ["", ": still here\n\n".repeat(1_000), "data: {}\n\n"]) {
    await using server = new SseServer(({ method }) =>
      method === "POST" ? new Response(null, { status: 404 }) : undefined
    );
    server.begins = () => begins;
    await using stage = await Stage.at(server.url, { ...SSE, limits: { startMs: 300 } });
    assert.equal((await failed(stage.call("t"))).code, "TIMED_OUT");
    if (begins !== "") continue;
    // There is enough time to find that the address has neither transport.
    await using late = await Stage.at(server.url, SSE);
    assert.equal((await failed(late.call("t"))).code, "UPSTREAM_PROTOCOL");
  }
});

Deno.test("a flood of unrequested answers ends the stream, and no other", async () => {
  let isFlood = true;
  await using server = new SseServer(({ message, stream }) => {
    if (!isFlood || message.method !== "tools/call") return undefined;
    stream?.write(`data: {"jsonrpc":"2.0","id":"x","result":{}}\n\n`.repeat(10_001));
    return new Response(null, { status: 202 });
  });
  await using stage = await Stage.at(server.url, SSE);
  assert.equal((await failed(stage.call("t"))).code, "UPSTREAM_PROTOCOL");
  isFlood = false;
  assert.deepEqual((await stage.call("t")).content, DONE);
});
