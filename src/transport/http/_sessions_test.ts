import assert from "node:assert/strict";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { CLIENT_INFO } from "../../../tests/kit/json_rpc.ts";
import { sdkServer } from "../../../tests/kit/sdk_server.ts";
import { echo, methods, mostly, params } from "../../../tests/kit/spoken.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Connection } from "../../protocol/connection.ts";
import { createHello } from "../../gateway/hello.ts";
import { SharedCapabilities } from "./_shared_capabilities.ts";
import { toAcceptedType } from "./_accept.ts";
import { reportSent, TextAnswer } from "./_answer.ts";
import { Sessions } from "./_sessions.ts";

const REVISION = "2025-11-25";
const hello = (isStateless: boolean) =>
  createHello([], { name: "pml", version: "1.0.0", isStateless });
const INITIALIZE = {
  jsonrpc: "2.0",
  id: "first",
  method: "initialize",
  params: { protocolVersion: REVISION, capabilities: {}, clientInfo: CLIENT_INFO },
};

type Headers = Readonly<Record<string, string>>;

function connectionOf(serve: Connection["serve"]): Connection {
  return { isStateless: false, serve, handleNotification() {}, close() {} };
}

/** A client of `Sessions`. */
class Client implements AsyncDisposable {
  readonly sessions: Sessions;
  id = "";

  constructor(serve: Connection["serve"] = echo) {
    const connect = () => connectionOf(serve);
    const owner = { prefix: "", capabilities: new SharedCapabilities(() => {}) };
    this.sessions = new Sessions({ hello, connect }, { connections: 10, queuedBytes: 1e6 }, owner);
  }

  static async begun(serve?: Connection["serve"]): Promise<Client> {
    const client = new Client(serve);
    const response = await client.send("POST", INITIALIZE) as Response;
    client.id = response.headers.get("mcp-session-id") ?? "";
    assert.notEqual(client.id, "");
    const { result } = await response.json();
    assert.equal(result.protocolVersion, REVISION);
    return client;
  }

  send(method: string, body?: unknown, more: Headers = {}): Promise<Response | TextAnswer> {
    const headers: Record<string, string> = { "mcp-protocol-version": REVISION, ...more };
    if (this.id !== "") headers["mcp-session-id"] ??= this.id;
    const { signal } = new AbortController();
    return this.sessions.answer({ method, body, headers, signal });
  }

  async status(method: string, body?: unknown, more?: Headers): Promise<number> {
    const answer = await this.send(method, body, more);
    if (answer instanceof Response) await answer.body?.cancel();
    return answer.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sessions[Symbol.asyncDispose]();
  }
}

/** Returns the messages of an answer. */
async function messagesOf(answer: Response | TextAnswer): Promise<readonly JsonObject[]> {
  if (answer instanceof TextAnswer) return [JSON.parse(answer.text)];
  assert.equal(answer.status, 200);
  const text = await answer.text();
  reportSent(answer);
  return messagesIn(text);
}

function messagesIn(text: string): readonly JsonObject[] {
  return [...text.matchAll(/^data: (.+)$/gm)].map(([, one = ""]) => JSON.parse(one));
}

/** Reads a stream until it contains a text. */
async function readUntil(response: Response, wanted: string): Promise<string> {
  const reader = (response.body ?? new Blob().stream()).getReader();
  let text = "";
  while (!text.includes(wanted)) {
    const { done, value } = await reader.read();
    assert.ok(!done, text);
    text += new TextDecoder().decode(value);
  }
  reader.releaseLock();
  return text;
}

const call = (id: unknown, more: object = {}) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "echo", ...more },
});

const request = fc.record({
  method: methods,
  id: fc.constantFrom<unknown>(1, "1", 0),
  params: fc.tuple(
    params,
    fc.record({
      tells: fc.constantFrom(1, 3),
      uri: fc.constant("a:b"),
      _meta: fc.record({ progressToken: mostly(7), own: fc.constant("mine") }),
    }, { requiredKeys: [] }),
  ).map(([given, more]) => JSON.parse(JSON.stringify({ ...given, ...more })) as JsonObject),
});

Deno.test("requests in a session are answered as the SDK answers them", async () => {
  await using own = await Client.begun();
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => "s" });
  const open = () => connectionOf(echo);
  await sdkServer(hello(false), { open, onError() {} }).connect(transport);
  const headers = {
    "content-type": "application/json",
    "mcp-session-id": "s",
    "mcp-protocol-version": REVISION,
    accept: "application/json, text/event-stream",
  };
  const bySdk = async (parsedBody: unknown) => {
    const asked = new Request("http://localhost/mcp", { method: "POST", headers });
    return await messagesOf(await transport.handleRequest(asked, { parsedBody }));
  };
  await bySdk(INITIALIZE);
  let streams = 0;
  await fc.assert(
    fc.asyncProperty(request, async (spoken) => {
      const body = { jsonrpc: "2.0", ...spoken };
      const { progressToken = 0 } = (spoken.params._meta ?? {}) as JsonObject;
      // The SDK never answers a request with an invalid progress token.
      if (!["number", "string"].includes(typeof progressToken)) return;
      const here = await messagesOf(await own.send("POST", structuredClone(body)));
      assert.deepEqual(here, await bySdk(body));
      if (here.length > 1) streams++;
    }),
    { numRuns: 2_000, seed: 7 },
  );
  assert.ok(streams > 50, `${streams} streams`);
});

Deno.test("messages of a request are sent on its stream until its answer ends the stream", async () => {
  const asked = Promise.withResolvers<JsonObject>();
  await using client = await Client.begun(async (_, context) => {
    await context.notify({ method: "notifications/progress", params: { progress: 1 } });
    const signal = new AbortController().signal;
    asked.resolve(
      await context.ask("elicitation/create", { message: "?" }, { signal, ms: 60_000 }),
    );
    return { content: [] };
  });
  const response = await client.send("POST", call(1)) as Response;
  const begun = await readUntil(response, "elicitation/create");
  const [progress, question] = messagesIn(begun);
  assert.equal(progress?.method, "notifications/progress");
  assert.match(begun, /^id: \d+\nretry: 1000\ndata: \n\n/, "an event to continue after");
  const answer = { jsonrpc: "2.0", id: question?.id, result: { action: "accept" } };
  assert.equal(await client.status("POST", answer), 202);
  assert.deepEqual(await asked.promise, { action: "accept" });
  const [end] = messagesIn(await readUntil(response, '"content"'));
  assert.deepEqual(end, { result: { content: [] }, jsonrpc: "2.0", id: 1 });
});

Deno.test("a client whose stream broke receives the rest of it once", async () => {
  const waits = Promise.withResolvers<void>();
  await using client = await Client.begun(async (_, context) => {
    await context.notify({ method: "notifications/progress", params: { progress: 1 } });
    await waits.promise;
    return { content: [] };
  });
  const response = await client.send("POST", call(1)) as Response;
  const text = await readUntil(response, "progress");
  const last = /^id: (\d+)$/gm.exec(text)?.[1] ?? "";
  assert.equal(await client.status("GET", undefined, { "last-event-id": last }), 409);
  await response.body?.cancel();
  waits.resolve();
  await new Promise((resolve) => setTimeout(resolve));
  const rest = await client.send("GET", undefined, { "last-event-id": last });
  const [progress, end] = await messagesOf(rest);
  assert.deepEqual([progress?.method, end?.id], ["notifications/progress", 1]);
  assert.equal(await client.status("GET", undefined, { "last-event-id": "none" }), 400);
});

Deno.test("several requests of one POST are answered on one stream", async () => {
  await using client = await Client.begun();
  const notification = { jsonrpc: "2.0", method: "notifications/initialized" };
  const batch = [call(1), notification, call("x")];
  const ids = (await messagesOf(await client.send("POST", batch))).map(({ id }) => id);
  assert.deepEqual(ids.map(String).toSorted(), ["1", "x"]);
  assert.equal(await client.status("POST", [call(1), call(1)]), 400, "the same id twice");
  const many = Array.from({ length: 101 }, (_, id) => call(id));
  assert.equal(await client.status("POST", many), 400);
});

Deno.test("requests without a session, and with a wrong revision or session, are refused", async () => {
  await using client = await Client.begun();
  const session = { "mcp-session-id": "other" };
  assert.equal(await client.status("POST", call(1), session), 404);
  assert.equal(await client.status("POST", call(1), { "mcp-protocol-version": "1999" }), 400);
  assert.equal(await client.status("POST", INITIALIZE), 400, "it has begun");
  assert.equal(await client.status("GET"), 200);
  const streams = await client.send("GET") as Response;
  assert.equal(await client.status("GET"), 409, "one stream is open");
  await streams.body?.cancel();
  assert.equal(await client.status("DELETE"), 200);
  assert.equal(await client.status("POST", call(1)), 404);
  await using none = new Client();
  assert.equal(await none.status("POST", call(1)), 400);
  const invalid = await none.send("POST", { ...INITIALIZE, params: {} });
  assert.match(await (invalid as Response).text(), /-32602/);
  const began = (invalid as Response).headers.get("mcp-session-id") ?? "";
  assert.equal(await none.status("POST", call(1), { "mcp-session-id": began }), 404);
});

Deno.test("a cancelled request has no answer, and the session serves others", async () => {
  const cancelled = Promise.withResolvers<unknown>();
  await using client = await Client.begun((params, { cancellation: { signal } }) => {
    if ((params as JsonObject).name === "echo") return Promise.resolve({ content: [] });
    return new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        cancelled.resolve(signal.reason.message);
        reject(signal.reason);
      })
    );
  });
  const slow = await client.send("POST", call(1, { name: "slow" })) as Response;
  const params = { requestId: 1, reason: "enough" };
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params };
  assert.equal(await client.status("POST", cancel), 202);
  assert.equal(await cancelled.promise, "enough");
  const [answer] = await messagesOf(await client.send("POST", call(2)));
  assert.equal(answer?.id, 2);
  const text = await readUntil(slow, "retry: 1000");
  assert.deepEqual(messagesIn(text), []);
  await slow.body?.cancel();
});

Deno.test("a request is over when its answer was sent as JSON to a client that accepts only that", async () => {
  const waits = Promise.withResolvers<void>();
  await using client = await Client.begun(async (_, context) => {
    await context.notify({ method: "notifications/progress", params: { progress: 1 } });
    await waits.promise;
    return { content: [] };
  });
  const stream = await client.send("POST", call(1));
  waits.resolve();
  const answer = await toAcceptedType(stream, "json", new AbortController().signal) as Response;
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.equal(await client.status("POST", call(1)), 400, "its answer was not sent");
  reportSent(answer);
  assert.equal(await client.status("POST", call(1)), 200);
});
