/**
 * Tests lost sessions and broken streams: which requests are repeated, and which errors are
 * reported.
 *
 * @module
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import { until } from "../../../tests/kit/wait.ts";
import { Cancellation } from "../../core/cancellation.ts";
import type { JsonObject } from "../../core/json.ts";
import { answer, event, failed, Scripted, Stage, stream } from "./_stage_test.ts";

const DONE = [{ type: "text", text: "done" }];
const EVENTS = { headers: { "content-type": "text/event-stream" } };

function refusal(code: number, message: string, id: unknown = null): Response {
  return Response.json({ jsonrpc: "2.0", id, error: { code, message } }, { status: 400 });
}

Deno.test("only a status 400 that names the session counts as a lost session", async () => {
  const lost: ((id: unknown) => Response)[] = [
    () => new Response("gone", { status: 404 }),
    () => new Response("Invalid or missing session ID", { status: 400 }),
    () => refusal(-32000, "Bad Request: No valid session ID provided"),
    () => refusal(-32600, "Bad Request: Missing session ID", "server-error"),
    (id) => refusal(-32001, "Session not found", id),
    () => refusal(-32004, "Unknown session ID"),
    (id) => refusal(-32603, "Invalid session id", id),
  ];
  const other: ((id: unknown) => Response)[] = [
    () => new Response("no", { status: 400 }),
    (id) => refusal(-32602, "The argument session is missing", id),
    () => refusal(-32000, "Bad Request: Parse error"),
    () => new Response("session", { status: 422 }),
    () => new Response("session", { status: 500 }),
  ];
  for (const [isLost, refusals] of [[true, lost], [false, other]] as const) {
    for (const [at, refused] of refusals.entries()) {
      let isFirst = true;
      await using server = new Scripted(({ message: { id, method } }) => {
        if (method !== "tools/call" || !isFirst) return undefined;
        isFirst = false;
        return refused(id);
      }, { isOlder: true });
      await using stage = await Stage.at(server.url);
      const outcome = await stage.call("t").catch(() => undefined);
      const calls = server.methods.filter((method) => method === "tools/call").length;
      assert.equal(calls, isLost ? 2 : 1, `${isLost} ${at}`);
      if (isLost) assert.deepEqual(outcome?.content, DONE);
    }
  }
});

Deno.test("400 and 404 of a server without sessions are reported as errors", async () => {
  for (const status of [400, 404]) {
    await using server = new Scripted(({ message: { method } }) =>
      method === "tools/call" ? new Response("no session", { status }) : undefined
    );
    await using stage = await Stage.at(server.url);
    const { code, detail } = await failed(stage.call("t"));
    assert.deepEqual([code, detail?.status], ["UPSTREAM_PROTOCOL", status]);
    assert.equal(server.methods.filter((method) => method === "tools/call").length, 1);
  }
});

Deno.test("after a 503 the next call begins a new session, and the failed call is not repeated", async () => {
  const error = { code: -32000, message: "busy" };
  for (const body of ["busy", JSON.stringify({ jsonrpc: "2.0", id: null, error })]) {
    let isBusy = true;
    const headers = { "content-type": body === "busy" ? "text/plain" : "application/json" };
    const busy = () => new Response(body, { status: 503, headers });
    await using server = new Scripted(
      ({ message: { method } }) => method === "tools/call" && isBusy ? busy() : undefined,
      { isOlder: true },
    );
    await using stage = await Stage.at(server.url);
    const { code, detail } = await failed(stage.call("t"));
    assert.deepEqual([code, detail?.may_have_run], ["UPSTREAM_DOWN", true]);
    assert.match(String(detail?.answered), /busy/);
    isBusy = false;
    assert.deepEqual((await stage.call("t")).content, DONE);
    const count = (wanted: string) => server.methods.filter((method) => method === wanted).length;
    assert.deepEqual([count("tools/call"), count("initialize")], [2, 2]);
    await stage.upstreams[Symbol.asyncDispose]();
    assert.equal(count("DELETE"), 2, "each session is ended");
  }
});

Deno.test("a session lost during calls fails only the calls that did not reach the server", async () => {
  let session = 0;
  const held = Promise.withResolvers<void>();
  await using server = new Scripted(async ({ message: { id, method, params }, headers }) => {
    if (method === "initialize") {
      const result = { protocolVersion: "2025-06-18", capabilities: { tools: {} } };
      return answer(id, result, { "mcp-session-id": `s${++session}` });
    }
    if (method !== "tools/call") return undefined;
    if ((params as JsonObject).name === "held") {
      await held.promise;
      return undefined;
    }
    const isGone = headers.get("mcp-session-id") === "s1";
    return isGone ? new Response(null, { status: 404 }) : undefined;
  }, { isOlder: true });
  await using stage = await Stage.at(server.url);
  const slow = stage.call("held");
  await until(() => server.methods.includes("tools/call"));
  const all = await Promise.all(Array.from({ length: 8 }, () => stage.call("t")));
  assert.ok(all.every(({ content }) => JSON.stringify(content) === JSON.stringify(DONE)));
  held.resolve();
  assert.deepEqual((await slow).content, DONE);
  assert.equal(session, 2, "one new session serves all");
});

Deno.test("an invalid session id is not sent, and calls go on", async () => {
  for (const odd of ["with blank", "ü", "x".repeat(1_001), ""]) {
    await using server = new Scripted(({ message: { id, method } }) => {
      if (method !== "initialize") return undefined;
      const result = { protocolVersion: "2025-06-18", capabilities: { tools: {} } };
      return answer(id, result, { "mcp-session-id": odd });
    }, { isOlder: true });
    await using stage = await Stage.at(server.url);
    assert.deepEqual((await stage.call("t")).content, DONE);
    assert.ok(server.came.every(({ headers }) => headers.get("mcp-session-id") === null));
  }
});

/** A server that sends parts on a stream, which breaks at the given positions. */
function resumable(parts: readonly string[], cuts: readonly number[]): Scripted {
  const whole = parts.join("");
  // The ids of the events are their indexes.
  const from = (last: string | null) => {
    const at = last === null ? 0 : Number(last) + 1;
    return parts.slice(0, at).join("").length;
  };
  const left = [...cuts];
  let id: unknown;
  return new Scripted(({ method, headers, message }) => {
    const isCall = message.method === "tools/call";
    const last = headers.get("last-event-id");
    if (!isCall && (method !== "GET" || last === null)) return undefined;
    if (isCall) id = message.id;
    const begin = from(last);
    const to = Math.max(left.shift() ?? whole.length, begin);
    return stream([whole.slice(begin, to).replaceAll("ID", String(id))]);
  }, { isOlder: true });
}

Deno.test("a stream that breaks anywhere is resumed, and no message arrives twice", async () => {
  const many = 6;
  const token = '"progressToken":"ID"';
  const parts = Array.from(
    { length: many },
    (_, at) =>
      `id: ${at}\nretry: 1\ndata: {"jsonrpc":"2.0","method":"notifications/progress",` +
      `"params":{${token},"progress":${at + 1}}}\n\n`,
  );
  const result = JSON.stringify({ content: DONE });
  parts.push(`id: ${many}\ndata: {"jsonrpc":"2.0","id":"ID","result":${result}}\n\n`);
  // The first event must be complete, otherwise there is no id to resume from.
  const [least, most] = [parts[0]?.length ?? 0, parts.join("").length - 1];
  const cuts = fc.array(fc.integer({ min: least, max: most }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(cuts, async (at) => {
      await using server = resumable(parts, at.toSorted((one, other) => one - other));
      await using stage = await Stage.at(server.url);
      const heard: unknown[] = [];
      const onProgress = ({ progress }: { progress: unknown }) => void heard.push(progress);
      assert.deepEqual((await stage.call("t", {}, { client: { onProgress } })).content, DONE);
      assert.deepEqual(heard, [1, 2, 3, 4, 5, 6]);
      assert.equal(server.methods.filter((method) => method === "tools/call").length, 1);
    }),
    { numRuns: 25 },
  );
});

Deno.test("a stream that ends repeatedly without an event is no longer resumed", async () => {
  await using server = new Scripted(({ method, headers, message }) => {
    if (message.method === "tools/call") return stream(["id: 1\nretry: 1\n\n"]);
    return method === "GET" && headers.has("last-event-id") ? stream([]) : undefined;
  }, { isOlder: true });
  await using stage = await Stage.at(server.url);
  const cancellation = Cancellation.of(AbortSignal.timeout(10_000));
  await assert.rejects(stage.call("t", {}, { cancellation }), { code: "UPSTREAM_DOWN" });
  assert.equal(server.came.filter(({ headers }) => headers.has("last-event-id")).length, 5);
});

/** A server of an older revision with a notification stream that the test writes and breaks. */
function telling(refuse: (last: string | null) => Response | undefined = () => undefined) {
  const streams: ReadableStreamDefaultController<Uint8Array>[] = [];
  const lasts: (string | null)[] = [];
  const server = new Scripted(({ method, headers, message: { id, method: asked } }) => {
    if (asked === "initialize") {
      const capabilities = { tools: {}, resources: { subscribe: true } };
      const result = { protocolVersion: "2025-06-18", capabilities };
      return answer(id, result, { "mcp-session-id": `s${streams.length}` });
    }
    if (asked === "resources/subscribe" || asked === "resources/unsubscribe") return answer(id, {});
    if (method !== "GET") return undefined;
    lasts.push(headers.get("last-event-id"));
    const refused = refuse(headers.get("last-event-id"));
    if (refused !== undefined) return refused;
    return new Response(
      new ReadableStream<Uint8Array>({
        start: (own) => void streams.push(own),
      }),
      EVENTS,
    );
  }, { isOlder: true });
  const write = (text: string) => streams.at(-1)?.enqueue(new TextEncoder().encode(text));
  return { server, streams, lasts, write, end: () => streams.at(-1)?.close() };
}

const FOLLOW = [{ uri: "test://a" }, { method: "resources/subscribe" }] as const;

Deno.test("followed resources count as changed after a stream broke, unless it was resumed", async () => {
  const { server, streams, lasts, write, end } = telling();
  await using _ = server;
  await using stage = await Stage.at(server.url);
  await stage.call("@resources", ...FOLLOW);
  await until(() => streams.length === 1);
  write("retry: 1\n\n");
  write(
    event({ method: "notifications/resources/updated", params: { uri: "test://a" } }, "id: 1\n"),
  );
  await until(() => stage.told.length === 1);
  end();
  await until(() => streams.length === 2);
  assert.deepEqual(lasts, [null, "1"]);
  assert.deepEqual(stage.told, ["updated test://a"], "it was taken up again");
  // An event id that cannot be sent back is ignored.
  write(event({ method: "x/y" }, `id: \u0001\nretry: 1\n`));
  end();
  await until(() => streams.length === 3);
  assert.equal(lasts[2], null);
  await until(() => stage.told.includes("changed tools"));
  assert.equal(stage.told.filter((one) => one === "updated test://a").length, 2);
});

Deno.test("an event id that the server forgot is dropped, and the stream begins again", async () => {
  for (const status of [400, 404, 405]) {
    const isSession = status === 404;
    const { server, streams, write, end } = telling((last) =>
      last === null ? undefined : new Response(null, { status })
    );
    await using _ = server;
    await using stage = await Stage.at(server.url);
    await stage.call("@resources", ...FOLLOW);
    await until(() => streams.length === 1);
    write(event({ method: "x/y" }, "id: old\nretry: 1\n"));
    end();
    await until(() => streams.length === 2);
    await until(() => stage.told.includes("updated test://a"));
    const count = (wanted: string) => server.methods.filter((method) => method === wanted).length;
    // A new session follows the same resources as the lost one.
    await until(() => count("resources/subscribe") === (isSession ? 2 : 1));
    assert.equal(count("initialize"), isSession ? 2 : 1);
  }
});

Deno.test("a stream that a proxy refuses for some time is requested again", async () => {
  let isDown = false;
  const { server, streams, write, end } = telling(() =>
    isDown ? new Response(null, { status: 502 }) : undefined
  );
  await using _ = server;
  await using stage = await Stage.at(server.url);
  await stage.call("@resources", ...FOLLOW);
  await until(() => streams.length === 1);
  write("retry: 1\n\n");
  isDown = true;
  end();
  await until(() => server.methods.filter((method) => method === "GET").length >= 3);
  isDown = false;
  await until(() => streams.length === 2 && stage.told.includes("updated test://a"));
});

Deno.test("a resource that is being followed while the session is lost is followed in the new session", async () => {
  let session = 0;
  const held = Promise.withResolvers<void>();
  await using server = new Scripted(async ({ message: { id, method }, headers }) => {
    const isFirst = headers.get("mcp-session-id") === "s1";
    switch (method) {
      case "initialize": {
        const capabilities = { tools: {}, resources: { subscribe: true } };
        const result = { protocolVersion: "2025-06-18", capabilities };
        return answer(id, result, { "mcp-session-id": `s${++session}` });
      }
      case "resources/subscribe":
        if (isFirst) await held.promise;
        return answer(id, {});
      case "tools/call":
        return isFirst ? new Response(null, { status: 404 }) : undefined;
    }
    return undefined;
  }, { isOlder: true });
  await using stage = await Stage.at(server.url);
  const followed = stage.call("@resources", ...FOLLOW);
  await until(() => server.methods.includes("resources/subscribe"));
  assert.deepEqual((await stage.call("t")).content, DONE);
  await followed;
  assert.equal(server.methods.filter((method) => method === "resources/subscribe").length, 2);
  held.resolve();
});
