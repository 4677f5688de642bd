import assert from "node:assert/strict";
import { FullHttp } from "../../../tests/kit/full_http.ts";
import { until } from "../../../tests/kit/wait.ts";
import type { ServerRequest } from "../../protocol/call.ts";
import type { JsonObject } from "../../core/json.ts";
import { answer, event, failed, Scripted, Stage, stream } from "./_stage_test.ts";

const DONE = [{ type: "text", text: "done" }];

for (const kind of ["legacy", "modern"] as const) {
  Deno.test(`all features of MCP work with a server over HTTP (${kind})`, async () => {
    await using full = new FullHttp(kind);
    const able = { elicitation: { form: {} }, sampling: {} };
    await using stage = await Stage.at(full.url, { able });
    assert.equal((await stage.list("tools")).length, 11);
    assert.deepEqual((await stage.list("resources"))[0], {
      uri: "test://a",
      name: "a",
      title: "The first",
      size: 3,
      "x/kept": 1,
    });
    assert.equal((await stage.list("resourceTemplates")).length, 1);
    const linked = await stage.call("link");
    assert.deepEqual(linked.content[0], {
      type: "resource_link",
      uri: "test://linked",
      name: "linked",
      "x/kept": { deep: true },
    });
    assert.deepEqual([linked.structuredContent, linked["x/kept"]], [{ at: "test://linked" }, 4]);
    const meta = await stage.call("meta", {}, { meta: { "x/mine": 1 } });
    assert.equal(JSON.parse(String(meta.content[0]?.text))["x/mine"], 1);
    const asked: ServerRequest[] = [];
    const onServerRequest = (one: ServerRequest) => {
      asked.push(one);
      return Promise.resolve({ action: "accept", content: { name: "n" } });
    };
    const named = await stage.call("ask_twice", {}, { client: { onServerRequest } });
    const said = JSON.parse(String(named.content[0]?.text));
    assert.deepEqual(said.two, { action: "accept", content: { name: "n" } });
    assert.deepEqual(asked.map(({ server, method }) => [server, method]), [
      ["far", "elicitation/create"],
      ["far", "elicitation/create"],
    ]);
    const error = await stage.call("fail");
    assert.deepEqual(error._meta, { "pml/error": { code: -32099, data: { why: "always" } } });
    const params = { uri: "test://missing" };
    const missing = await failed(stage.call("@resources", params, { method: "resources/read" }));
    assert.match(missing.message, /Not found/);
    assert.equal((await stage.list("prompts")).length, 1);
    await stage.call("add_prompt");
    await until(() => stage.told.includes("changed prompts"));
    await stage.call("@resources", { uri: "test://a" }, { method: "resources/subscribe" });
    await until(async () => {
      await stage.call("touch");
      return stage.told.includes("updated test://a");
    });
    await stage.upstreams[Symbol.asyncDispose]();
    const { method, headers } = full.asked.at(-1) ?? assert.fail();
    if (kind === "legacy") {
      assert.deepEqual([method, "mcp-session-id" in headers], ["DELETE", true]);
    } else assert.ok(full.asked.every(({ headers }) => !("mcp-session-id" in headers)));
  });

  Deno.test(`logs and requests of a server within a call reach that call (${kind})`, async () => {
    await using full = new FullHttp(kind);
    await using stage = await Stage.at(full.url, { able: { elicitation: { form: {} } } });
    const heard: string[][] = [[], [], []];
    const open = Promise.withResolvers<JsonObject>();
    const calls = ["ask_name", "log", "ask_name"].map((tool, at) =>
      stage.call(tool, {}, {
        client: {
          onMessage: ({ level }) => void heard[at]?.push(String(level)),
          onServerRequest: async () => {
            heard[at]?.push("asked");
            // The log entry arrives while both requests are open.
            await open.promise;
            return { action: "accept", content: { name: `${at}` } };
          },
        },
      })
    );
    await calls[1];
    await until(() => heard[0]?.length === 1 && heard[2]?.length === 1);
    open.resolve({});
    const [first, , third] = await Promise.all(calls);
    assert.deepEqual(heard, [["asked"], ["debug", "info", "error"], ["asked"]]);
    for (const [result, name] of [[first, "0"], [third, "2"]] as const) {
      const said = JSON.parse(String(result?.content[0]?.text));
      assert.deepEqual(said.one.content, { name });
    }
  });
}

Deno.test("the stateless revision is tried first, with its headers, and an older one after one refusal", async () => {
  await using newest = new Scripted(({ message: { id, method } }) => {
    if (method !== "tools/list") return undefined;
    const properties = {
      where: { type: "string", "x-mcp-header": "Region" },
      deep: { type: "object", properties: { n: { type: "integer", "x-mcp-header": "N" } } },
      other: { type: "string" },
    };
    return answer(id, { tools: [{ name: "t", inputSchema: { type: "object", properties } }] });
  });
  const keyHeaders = { "X-PML-Key-A": "key-of-the-call" };
  const headers = { Authorization: "Bearer of-the-person" };
  await using stage = await Stage.at(newest.url, { server: { headers, keyHeaders } });
  await stage.list("tools");
  const args = { where: " é", deep: { n: 7 }, other: "no" };
  assert.deepEqual((await stage.call("t", args)).content, DONE);
  const [discover, list, call] = newest.came;
  assert.deepEqual(newest.methods, ["server/discover", "tools/list", "tools/call"]);
  for (const one of [discover, list, call]) {
    assert.equal(one?.headers.get("authorization"), "Bearer of-the-person");
    assert.equal(one?.headers.get("mcp-protocol-version"), "2026-07-28");
    assert.equal(one?.headers.get("mcp-method"), one?.message.method);
    const key = one === call ? "key-of-the-call" : null;
    assert.equal(one?.headers.get("x-pml-key-a"), key, "a key goes with a call alone");
  }
  assert.equal(call?.headers.get("mcp-name"), "t");
  assert.equal(call?.headers.get("mcp-param-region"), `=?base64?${btoa("\u0020\u00c3\u00a9")}?=`);
  assert.equal(call?.headers.get("mcp-param-n"), "7");
  assert.equal(call?.headers.get("mcp-param-other"), null);

  await using older = new Scripted(undefined, { isOlder: true });
  await using second = await Stage.at(older.url);
  await second.call("t");
  const after = older.came.filter(({ message }) => message.method === "tools/call");
  assert.equal(after[0]?.headers.get("mcp-session-id"), "s1");
  assert.equal(after[0]?.headers.get("mcp-protocol-version"), "2025-06-18");
  assert.deepEqual(older.methods.slice(0, 3), [
    "server/discover",
    "initialize",
    "notifications/initialized",
  ]);
});

Deno.test("a tool with invalid header arguments is not called", async () => {
  const mark = (header: string | number, type = "string") => ({ type, "x-mcp-header": header });
  const wrong: Readonly<Record<string, JsonObject>> = {
    empty: { properties: { a: mark("") } },
    blank: { properties: { a: mark("a b") } },
    line: { properties: { a: mark("a\r\nb") } },
    number: { properties: { a: mark("A", "number") } },
    object: { properties: { a: mark("A", "object") } },
    twice: { properties: { a: mark("A"), b: mark("a") } },
    root: mark("A"),
    items: { properties: { a: { type: "array", items: mark("A") } } },
    any: { anyOf: [{ properties: { a: mark("A") } }] },
    shared: { $defs: { a: mark("A") } },
    text: { properties: { a: mark(1) } },
  };
  await using server = new Scripted();
  server.tools = [
    ...Object.entries(wrong).map(([name, schema]) => ({ name, inputSchema: schema })),
    { name: "right", inputSchema: { properties: { "x-mcp-header": mark("A", "boolean") } } },
  ];
  await using stage = await Stage.at(server.url);
  await stage.list("tools");
  for (const name of Object.keys(wrong)) {
    const error = await failed(stage.call(name, { a: "x", b: "y" }));
    assert.deepEqual([error.code, error.detail?.may_have_run], ["UPSTREAM_PROTOCOL", false], name);
  }
  await stage.call("right", { "x-mcp-header": true });
  const calls = server.came.filter(({ message }) => message.method === "tools/call");
  assert.deepEqual(calls.map(({ headers }) => headers.get("mcp-param-a")), ["true"]);
});

Deno.test("progress reaches its call, and no other", async () => {
  await using server = new Scripted(({ message: { id, method, params } }) => {
    if (method !== "tools/call") return undefined;
    const { _meta } = params as { _meta: { progressToken: string } };
    const { progressToken } = _meta;
    const messages = [1, 2].map((progress) =>
      event({ method: "notifications/progress", params: { progressToken, progress, message: "m" } })
    );
    return stream([...messages, event({ id, result: { content: DONE } })]);
  });
  await using stage = await Stage.at(server.url);
  const heard: unknown[][] = [[], []];
  await Promise.all(
    heard.map((own) =>
      stage.call("t", {}, { client: { onProgress: ({ progress }) => void own.push(progress) } })
    ),
  );
  assert.deepEqual(heard, [[1, 2], [1, 2]]);
});

Deno.test("the handshake finds the revision of a server that answers the other one wrongly", async () => {
  // One server answers unknown methods wrongly. The other reports the stateless revision only at the
  // second request.
  await using vague = new Scripted(
    ({ message: { id, method } }) => method === "server/discover" ? answer(id, {}) : undefined,
    { isOlder: true },
  );
  let isFirst = true;
  await using shy = new Scripted(({ message: { id } }) => {
    if (!isFirst) return undefined;
    isFirst = false;
    const error = { code: -32022, message: "no", data: { supported: ["2026-07-28"] } };
    return Response.json({ jsonrpc: "2.0", id, error }, { status: 400 });
  });
  for (const [server, greeted] of [[vague, "initialize"], [shy, "server/discover"]] as const) {
    await using stage = await Stage.at(server.url);
    assert.deepEqual((await stage.call("t")).content, DONE);
    assert.deepEqual(server.methods.slice(0, 2), ["server/discover", greeted]);
  }
});

Deno.test("no request is sent before the end of the handshake", async () => {
  const seen: string[] = [];
  const ready = Promise.withResolvers<undefined>();
  await using server = new Scripted(async ({ message: { method } }) => {
    if (method === "notifications/initialized") {
      await ready.promise;
      seen.push("ready");
    } else if (method === "tools/call") seen.push("call");
    return undefined;
  }, { isOlder: true });
  await using stage = await Stage.at(server.url);
  const call = stage.call("t");
  await until(() => server.methods.includes("notifications/initialized"));
  // A message that could overtake it would have come before this other request.
  await fetch(server.url, { method: "POST", body: "{}" });
  ready.resolve(undefined);
  await call;
  assert.deepEqual(seen, ["ready", "call"]);
});

Deno.test("a notification that was just sent arrives before its connection is closed", async () => {
  const method = "notifications/acme/note";
  for (const isOlder of [true, false]) {
    await using server = new Scripted(() => undefined, { isOlder });
    const stage = await Stage.at(server.url);
    await stage.call("t");
    await stage.call("t", {}, { method, isNotification: true });
    await stage[Symbol.asyncDispose]();
    assert.ok(server.methods.includes(method), `${server.methods}`);
  }
});

Deno.test("a lost session is replaced, once for each call", async () => {
  await using full = new FullHttp("legacy");
  await using stage = await Stage.at(full.url);
  await stage.call("link");
  await full.forget();
  await Promise.all([1, 2, 3].map(() => stage.call("link")));
  assert.equal(full.ledger.filter((line) => line.startsWith("call link")).length, 4);
  await using never = new Scripted(
    ({ message }) =>
      message.method === "tools/call" ? new Response("gone", { status: 404 }) : undefined,
    { isOlder: true },
  );
  await using other = await Stage.at(never.url);
  const error = await failed(other.call("t"));
  assert.deepEqual([error.code, error.detail?.may_have_run], ["UPSTREAM_DOWN", false]);
  const tries = never.methods.filter((method) => method === "tools/call");
  assert.equal(tries.length, 2);
});

Deno.test("a broken stream is resumed if the server supports it, otherwise reported", async () => {
  let posts = 0;
  const script = ({ method, headers, message: { id, method: asked } }: {
    method: string;
    headers: Headers;
    message: JsonObject;
  }) => {
    if (asked === "tools/call") {
      posts++;
      last = id;
      return stream(["id: e1\nretry: 10\ndata:\n\n", event({ method: "x/y" }, "id: e2\n")]);
    }
    if (method !== "GET" || headers.get("last-event-id") !== "e2") return undefined;
    return stream([": still here\n\n", event({ id: last, result: { content: DONE } })]);
  };
  let last: JsonObject[string] | undefined;
  await using older = new Scripted(script, { isOlder: true });
  await using stage = await Stage.at(older.url);
  assert.deepEqual((await stage.call("t")).content, DONE);
  assert.equal(posts, 1, "the call was sent once");
  await using newest = new Scripted(script);
  await using other = await Stage.at(newest.url);
  const error = await failed(other.call("t"));
  assert.deepEqual([error.code, error.detail?.may_have_run], ["UPSTREAM_DOWN", true]);
  assert.equal(posts, 2, "nothing is sent again");
});

Deno.test("a result of 20 MB passes, and a message over the limit fails only its request", async () => {
  const large = "x".repeat(20_000_000);
  await using server = new Scripted(({ message: { id, method, params } }) => {
    const { name } = (params ?? {}) as JsonObject;
    if (method !== "tools/call") return undefined;
    const result = { content: [{ type: "text", text: large }] };
    if (name === "json") return answer(id, result);
    if (name === "events") return stream([event({ id, result })]);
    if (name === "lines") {
      const line = `data: ${"y".repeat(1_000_000)}\n`;
      return stream(Array.from({ length: 60 }, () => line), { stays: true });
    }
    return undefined;
  });
  await using stage = await Stage.at(server.url, { limits: { lineBytes: 50_000_000 } });
  for (const name of ["json", "events"]) {
    assert.equal(String((await stage.call(name)).content[0]?.text).length, large.length);
  }
  await using narrow = await Stage.at(server.url, { limits: { lineBytes: 1_000_000 } });
  for (const name of ["json", "events", "lines"]) {
    const error = await failed(narrow.call(name));
    assert.equal(error.code, "UPSTREAM_PROTOCOL");
    assert.match(error.message, /over 1000000 bytes/);
  }
  assert.deepEqual((await narrow.call("t")).content, DONE);
  const greetings = server.methods.filter((method) => method === "server/discover");
  assert.equal(greetings.length, 2, "the connection was used further");
});
