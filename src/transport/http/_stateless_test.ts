import assert from "node:assert/strict";
import { createMcpHandler } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { sdkServer } from "../../../tests/kit/sdk_server.ts";
import { echo, envelope, methods, mostly, params } from "../../../tests/kit/spoken.ts";
import { type JsonObject, objectOf } from "../../core/json.ts";
import type { Connection } from "../../protocol/connection.ts";
import { createHello } from "../../gateway/hello.ts";
import { yieldTurn } from "../../io/waiting.ts";
import { isDefinedMethod } from "../../protocol/revisions.ts";
import { eventBytes, statusOf, TextAnswer } from "./_answer.ts";
import { HttpStateless } from "./_stateless.ts";
import { selectRoute } from "./_route.ts";

const NAME = { name: "pml", version: "1.0.0" };
const hello = (isStateless: boolean) => createHello([], { ...NAME, isStateless });

const LIMITS = { connections: 10, queuedBytes: 1_000 };
const REST = {
  hello,
  listen: () => ({ set() {}, reportDropped() {}, [Symbol.dispose]() {} }),
  isTask: () => true,
};

/** Answers a request; undefined for a request of a session. */
async function answered(
  stateless: HttpStateless,
  request: { readonly headers: Record<string, string>; readonly signal: AbortSignal },
  body: unknown,
): Promise<Response | TextAnswer | undefined> {
  const route = selectRoute({ body, headers: request.headers });
  return route.kind === "session" ? undefined : await stateless.answer(request, route);
}

function connection(): Connection {
  return { isStateless: true, serve: echo, handleNotification() {}, close() {} };
}

/** Returns the status, the content type and the messages of an answer. */
async function seen(made: Response | TextAnswer) {
  if (made instanceof TextAnswer) {
    return { status: made.status, type: "application/json", said: [JSON.parse(made.text)] };
  }
  const type = made.headers.get("content-type");
  const text = await made.text();
  const said = type === "text/event-stream"
    ? [...text.matchAll(/^data: (.*)$/gm)].map(([, one = ""]) => JSON.parse(one))
    : [text && JSON.parse(text)];
  return { status: made.status, type, said };
}

/** Additional members of a request, which the SDK refuses. */
const beside = fc.constantFrom({}, {}, {}, {}, {}, {}, { result: {} }, { extra: 1 });
const request = fc.record({
  method: methods,
  id: fc.constantFrom<unknown>(1, "1", 0, null, 1.5),
  beside,
  params: fc.tuple(
    params,
    fc.oneof({ arbitrary: envelope, weight: 9 }, fc.constant(undefined)),
    fc.record({
      tells: fc.constantFrom(1, 3),
      uri: fc.constant("a:b"),
      name: fc.constantFrom("echo", "=?base64?YQ==?=", "=?x"),
    }, { requiredKeys: [] }),
    fc.constantFrom("plain", "plain", "plain", "odd"),
  ).map(([given, _meta, more, kind]) => {
    const all = { ...given, ...more, _meta };
    const unusual = ["inputResponses", "requestState", "icons"];
    const without = (key: string, value: unknown) => unusual.includes(key) ? undefined : value;
    return JSON.parse(JSON.stringify(all, kind === "odd" ? undefined : without)) as JsonObject;
  }),
  headers: fc.record({
    "mcp-protocol-version": mostly("2026-07-28"),
    "mcp-method": mostly("the same"),
    "mcp-name": mostly("the same"),
    accept: mostly("application/json, text/event-stream"),
    "mcp-param-x": fc.constant("x"),
  }, { requiredKeys: ["mcp-protocol-version", "mcp-method", "mcp-name", "accept"] }),
});

/** Returns the headers, including those that repeat the body. */
function headersOf(
  { headers, method, params }: {
    readonly headers: object;
    readonly method: string;
    readonly params: object;
  },
): Record<string, string> {
  const { name, uri } = params as { name?: string; uri?: string };
  const same = { "mcp-method": method, "mcp-name": method === "resources/read" ? uri : name };
  const filled = Object.entries(headers).map(([key, value]) => [
    key,
    value === "the same" ? same[key as "mcp-name"] : value,
  ]);
  return Object.fromEntries([
    ["content-type", "application/json"],
    ...filled.filter(([, value]) => typeof value === "string"),
  ]);
}

/** The errors of requests that are refused before they are served. */
const REFUSED = [-32600, -32602, -32603, -32020, -32022];

/**
 * Returns the comparable part of an answer. PML and the SDK word errors differently, and an error
 * that a tool returns has the status that PML assigns.
 */
function comparable({ status, type, said }: Awaited<ReturnType<typeof seen>>) {
  const isOwn = ({ error }: { readonly error?: { code: number; message: string } }) =>
    error !== undefined && REFUSED.includes(error.code) && error.message !== "It fails";
  const [first] = said;
  return {
    status: first?.error && !isOwn(first) ? statusOf(first.error) : status,
    type,
    // An invalid id is not repeated.
    said: said.map((one) =>
      isOwn(one) ? { id: one.id === 1.5 ? null : one.id, code: one.error.code } : one
    ),
  };
}

Deno.test("requests over HTTP are answered as the SDK answers them", async () => {
  const stateless = new HttpStateless({ ...REST, connect: connection }, LIMITS);
  const sdk = createMcpHandler(
    () => Promise.resolve(sdkServer(hello(true), { open: connection, onError() {} })),
    {
      legacy: "reject",
      onerror() {},
    },
  );
  const count = { answers: 0, streams: 0 };
  await fc.assert(
    fc.asyncProperty(request, async ({ headers: own, beside, ...spoken }) => {
      const headers = headersOf({ headers: own, ...spoken });
      const body = { jsonrpc: "2.0", ...spoken, ...beside };
      const { signal } = new AbortController();
      const made = await answered(stateless, { headers, signal }, structuredClone(body));
      // PML accepts members that it does not define, and requests that it has routed to a session.
      if (made === undefined || Object.keys(beside).length > 0) return;
      // In the SDK, an extension method cannot return an input request.
      const { resultType } = objectOf(spoken.params.answer);
      if (resultType === "input_required" && !isDefinedMethod(spoken.method)) return;
      headers.accept = "application/json, text/event-stream";
      const here = await seen(made);
      const asked = new Request("http://localhost/mcp", { method: "POST", headers, signal });
      const there = await seen(await sdk.fetch(asked, { parsedBody: body }));
      assert.deepEqual(comparable(here), comparable(there));
      count.answers++;
      if (here.type === "text/event-stream") count.streams++;
    }),
    { numRuns: 6_000, seed: 7 },
  );
  assert.ok(count.answers > 2_500 && count.streams > 50, JSON.stringify(count));
});

const OF_CALL = {
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
  "mcp-name": "x",
  accept: "application/json, text/event-stream",
};
const CALL = {
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "x",
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
};

Deno.test("a request of a client that has disconnected is answered and not served", async () => {
  const calls: string[] = [];
  using stateless = new HttpStateless({
    ...REST,
    connect: () => ({
      ...connection(),
      serve: (...request) => {
        calls.push("served");
        return echo(...request);
      },
      close: () => void calls.push("closed"),
    }),
  }, LIMITS);
  const signal = AbortSignal.abort();
  assert.ok(await answered(stateless, { headers: OF_CALL, signal }, CALL));
  assert.deepEqual(calls, ["closed"]);
});

Deno.test("a request over HTTP is cancelled when its client disconnects", async () => {
  const aborted: unknown[] = [];
  const closed: string[] = [];
  const stateless = new HttpStateless({
    ...REST,
    connect: () => ({
      ...connection(),
      serve: (_, { cancellation: { signal } }) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => {
            aborted.push(signal.reason);
            resolve({});
          });
        }),
      close: () => void closed.push("closed"),
    }),
  }, LIMITS);
  const gone = new AbortController();
  const made = answered(stateless, { headers: OF_CALL, signal: gone.signal }, CALL);
  await yieldTurn();
  gone.abort();
  assert.equal((await made as Response).status, 499);
  const other = answered(
    stateless,
    { headers: OF_CALL, signal: new AbortController().signal },
    CALL,
  );
  await yieldTurn();
  stateless[Symbol.dispose]();
  assert.equal((await other as Response).status, 499);
  assert.deepEqual([aborted.map(String), closed], [
    ["Error: Connection closed", "Error: Connection closed"],
    ["closed", "closed"],
  ]);
});

Deno.test("a request with a cancelled event stream sends nothing, and ends with its connection", async () => {
  const ends: string[] = [];
  let tell = () => Promise.resolve();
  const stateless = new HttpStateless({
    ...REST,
    connect: () => ({
      ...connection(),
      serve: (_, context) =>
        new Promise((resolve) => {
          tell = () => context.notify({ method: "notifications/progress", params: {} });
          context.cancellation.signal.addEventListener("abort", () => {
            ends.push("aborted");
            resolve({});
          });
        }),
      close: () => void ends.push("closed"),
    }),
  }, LIMITS);
  const gone = new AbortController();
  const made = answered(stateless, { headers: OF_CALL, signal: gone.signal }, CALL);
  await yieldTurn();
  await tell();
  const { body } = await made as Response;
  await body?.cancel();
  await assert.doesNotReject(async () => await tell());
  // Its connection ends later.
  gone.abort();
  stateless[Symbol.dispose]();
  assert.deepEqual(ends, ["aborted", "closed"]);
});

Deno.test("frameOf() converts a text with line ends to one event", () => {
  const frame = new TextDecoder().decode(eventBytes('{"a":\r\n[1,\n\n2]}'));
  assert.equal(frame, 'event: message\ndata: {"a":  [1,  2]}\n\n');
});
