import assert from "node:assert/strict";
import { call, codeOf, errorOf, Yard } from "../../tests/fixtures/modules/yard.ts";
import { TlsFront } from "../../tests/kit/connect_proxy.ts";
import { assertGolden } from "../../tests/kit/golden.ts";
import type { JsonObject } from "../core/json.ts";
import type { Sandbox } from "./sandbox.ts";

const MODULE = `
  export async function get({ url, init }, host) {
    const response = await host.fetch(url, init);
    const { status, statusText, redirected } = response;
    const headers = Object.fromEntries(response.headers);
    return { status, statusText, redirected, url: response.url, headers, text: await response.text() };
  }
  export const global = () => fetch("https://api.example.com/");
  export const abort = async ({ url }, host) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 50);
    await host.fetch(url, { signal: controller.signal });
  };
`;

/** A loopback server that records its requests. The path of a request selects the response. */
class Sink implements AsyncDisposable {
  readonly asked: {
    readonly method: string;
    readonly path: string;
    readonly headers: Headers;
    readonly body: string;
  }[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(routes: Readonly<Record<string, () => Response | Promise<Response>>> = {}) {
    const answer = async (request: Request) => {
      const { pathname: path } = new URL(request.url);
      const { method, headers } = request;
      this.asked.push({ method, path, headers, body: await request.text() });
      return await (routes[path] ?? (() => new Response("plain")))();
    };
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, answer);
  }

  get at(): string {
    return `127.0.0.1:${this.#server.addr.port}`;
  }

  get url(): string {
    return `http://${this.at}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

function get(sandbox: Sandbox, url: string, init: JsonObject = {}): Promise<JsonObject> {
  return call(sandbox, "get", { url, init }) as Promise<JsonObject>;
}

Deno.test("host.fetch() sends a request and returns the response of a granted address", async () => {
  await using yard = new Yard();
  await using sink = new Sink({
    "/made": () => new Response("é", { status: 201, headers: { "x-a": "1" } }),
    "/empty": () => new Response(null, { status: 204 }),
  });
  const sandbox = await yard.start(MODULE, { net: [sink.at] });
  const made = await get(sandbox, `${sink.url}/made?q=1`, {
    method: "POST",
    headers: { "x-b": "2", authorization: "Bearer t" },
    body: "sent",
  });
  assert.deepEqual([made.status, made.statusText, made.text], [201, "Created", "é"]);
  assert.equal(made.url, `${sink.url}/made?q=1`);
  assert.equal((made.headers as JsonObject)["x-a"], "1");
  const [asked] = sink.asked;
  assert.deepEqual([asked?.method, asked?.path, asked?.body], ["POST", "/made", "sent"]);
  assert.equal(asked?.headers.get("authorization"), "Bearer t");
  assert.equal((await get(sandbox, `${sink.url}/empty`)).status, 204);
});

Deno.test("host.fetch() does not connect to addresses without a grant", async () => {
  await using yard = new Yard();
  await using granted = new Sink();
  await using other = new Sink();
  const port = other.at.split(":")[1];
  const sandbox = await yard.start(MODULE, { net: [granted.at] });
  const tried = [
    other.url, // another port
    `http://localhost:${port}/`, // a name of the same address
    `http://[::1]:${port}/`,
    `http://[::ffff:127.0.0.1]:${port}/`,
    `http://2130706433:${port}/`,
    `http://127.1:${port}/`,
    `http://user:secret@${granted.at}/`,
    "https://api.example.com/",
    "file:///etc/passwd",
    "data:text/plain,x",
    `ws://${granted.at}/`,
  ];
  for (const url of tried) assert.equal(await codeOf(get(sandbox, url)), "SANDBOX_DENIED", url);
  assert.match(
    (await errorOf(get(sandbox, other.url))).message,
    /no net grant for 127\.0\.0\.1:\d+/,
  );
  const none = await yard.start(MODULE);
  assert.equal(await codeOf(get(none, granted.url)), "SANDBOX_DENIED");
  assert.match((await errorOf(call(none, "global"))).message, /host\.fetch/);
  assert.deepEqual([granted.asked.length, other.asked.length], [0, 0]);
});

Deno.test("host.fetch() refuses a granted name that resolves to this machine", async () => {
  await using yard = new Yard();
  await using sink = new Sink();
  const [, port] = sink.at.split(":");
  const sandbox = await yard.start(MODULE, { net: [`localhost:${port}`] });
  const error = await errorOf(get(sandbox, `http://localhost:${port}/`));
  assert.equal(error.code, "SANDBOX_DENIED");
  assert.match(error.message, /not public/);
  const all = await yard.start(MODULE, { net: ["*"] });
  assert.equal(await codeOf(get(all, "https://localhost/")), "SANDBOX_DENIED");
  assert.equal(await codeOf(get(all, `http://${sink.at}/`)), "SANDBOX_DENIED");
  assert.equal(await codeOf(get(all, "https://127.0.0.1/")), "SANDBOX_DENIED");
  assert.equal(sink.asked.length, 0);
});

Deno.test("host.fetch() checks each redirect, and sends no secret to another origin", async () => {
  await using yard = new Yard();
  await using second = new Sink();
  await using closed = new Sink();
  await using first: Sink = new Sink({
    "/other": () => redirect(302, `${second.url}/there`),
    "/keep": () => redirect(307, `${second.url}/there`),
    "/closed": () => redirect(302, closed.url),
    "/loop": () => redirect(302, "/loop"),
    "/file": () => redirect(302, "file:///etc/passwd"),
  });
  const sandbox = await yard.start(MODULE, { net: [first.at, second.at] });
  const headers = { authorization: "Bearer t", cookie: "c=1", "x-kept": "1" };
  const post = { method: "POST", body: "sent", headers };
  const there = await get(sandbox, `${first.url}/other`, post);
  assert.deepEqual([there.redirected, there.url], [true, `${second.url}/there`]);
  await get(sandbox, `${first.url}/keep`, post);
  const seen = second.asked.map(({ method, headers, body }) => [
    ...[method, body, headers.get("authorization"), headers.get("cookie"), headers.get("x-kept")],
  ]);
  assert.deepEqual(seen, [["GET", "", null, null, "1"], ["POST", "sent", null, null, "1"]]);
  assert.equal(await codeOf(get(sandbox, `${first.url}/closed`)), "SANDBOX_DENIED");
  assert.equal(await codeOf(get(sandbox, `${first.url}/file`)), "SANDBOX_DENIED");
  assert.match(await codeOf(get(sandbox, `${first.url}/loop`)), /redirects more than 10 times/);
  assert.equal((await get(sandbox, `${first.url}/other`, { redirect: "manual" })).status, 302);
  assert.match(
    await codeOf(get(sandbox, `${first.url}/other`, { redirect: "error" })),
    /the server redirects/,
  );
  assert.equal(closed.asked.length, 0);
});

Deno.test("host.fetch() limits a body, and stops when the module or the call is cancelled", async () => {
  await using yard = new Yard();
  const waiting = Promise.withResolvers<Response>();
  await using sink = new Sink({
    "/large": () => new Response(new Uint8Array(3 << 20)),
    "/slow": () => waiting.promise,
  });
  const limits = { ...yard.options("").limits, resultBytes: 2 << 20 };
  const sandbox = await yard.start(MODULE, { net: [sink.at], limits });
  const error = await errorOf(get(sandbox, `${sink.url}/large`));
  assert.equal(error.code, "RESULT_TOO_LARGE");
  assert.doesNotMatch(error.message, /large/);
  assert.match(await codeOf(call(sandbox, "abort", { url: `${sink.url}/slow` })), /AbortError/);
  waiting.resolve(new Response("late"));
});

function redirect(status: number, location: string): Response {
  return new Response(null, { status, headers: { location } });
}

Deno.test("host.fetch() reports why a server is not reached, without the path of the URL", async () => {
  await using yard = new Yard();
  await using sink = new Sink();
  await using secure = await TlsFront.before(0);
  using silent = listenRaw("");
  using broken = listenRaw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf");
  const closed = listenRaw("");
  closed[Symbol.dispose]();
  const loopback = (port: number) => `127.0.0.1:${port}`;
  const secured = loopback(secure.port);
  const [gone, silentAt, brokenAt] = [closed, silent, broken].map(({ port }) => loopback(port));
  const servers: readonly (readonly [string, string])[] = [
    ["nothing listens", `http://${gone}`],
    ["no answer", `http://${silentAt}`],
    ["half of an answer", `http://${brokenAt}`],
    ["an unknown certificate", `https://${secured}`],
    ["http at a port of https", `http://${secured}`],
    ["https at a port of http", `https://${sink.at}`],
    // The resolver refuses a name with such a long label without a query.
    ["a name without an address", `https://${"a".repeat(70)}.example`],
  ];
  const net = ["*", sink.at, secured, ...[gone, silentAt, brokenAt].map((at) => `${at}`)];
  const sandbox = await yard.start(MODULE, { net });
  const lines = [];
  for (const [what, origin] of servers) {
    const text = await codeOf(get(sandbox, `${origin}/secret-path?key=secret-key#secret-part`));
    assert.ok(text.includes(new URL(origin).host), text);
    assert.doesNotMatch(text, /secret/);
    lines.push(`${what}: ${text}`);
  }
  assertGolden("call/host.fetch does not reach a server", lines.join("\n"));
});

/** Listens for connections; each ends with `answer` after the first bytes of its request. */
function listenRaw(answer: string): Disposable & { readonly port: number } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serve = async () => {
    for await (const connection of listener) {
      await connection.read(new Uint8Array(1_024));
      await connection.write(new TextEncoder().encode(answer));
      connection.close();
    }
  };
  void serve();
  return { port: listener.addr.port, [Symbol.dispose]: () => listener.close() };
}
