/**
 * Attacks on the HTTP server of the page: other sites, other programs and other users of the machine.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { PageEvent, PageState } from "../control/api.ts";
import { rawHttp } from "../../tests/kit/raw_http.ts";
import type { PageEventListener } from "./page_data.ts";
import { type PageApi, PageServer } from "./server.ts";

const STATE = { waiting: [] } as unknown as PageState;

/** An API that records its actions and events. */
class RecordingApi implements PageApi {
  readonly acts: string[] = [];
  readonly events: string[] = [];
  readonly takers = new Set<PageEventListener>();

  slow: Promise<unknown> | undefined;

  read(name: string): Promise<unknown> | undefined {
    if (name === "slow") return this.slow;
    return name === "state" ? Promise.resolve(STATE) : undefined;
  }

  act(name: string, body: unknown): Promise<unknown> | undefined {
    this.acts.push(`${name} ${JSON.stringify(body)}`);
    return Promise.resolve({ done: true });
  }

  follow(take: PageEventListener): Promise<Disposable> {
    take({ type: "state", state: STATE });
    this.takers.add(take);
    return Promise.resolve({ [Symbol.dispose]: () => void this.takers.delete(take) });
  }

  record(event: string): void {
    this.events.push(event);
  }
}

async function opened(options: Parameters<typeof PageServer.open>[2] = {}) {
  const api = new RecordingApi();
  const server = await PageServer.open(api, 0, options);
  const { origin } = server;
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${origin}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const signIn = async (link = server.link(), headers: Record<string, string> = {}) => {
    const response = await post("/api/sign-in", { secret: new URL(link).hash.slice(1) }, headers);
    const { token = "", error } = await response.json();
    const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
    return { status: response.status, error, headers: { cookie, "x-pml-page": token }, response };
  };
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${origin}${path}`, { headers });
    return { status: response.status, text: await response.text(), response };
  };
  return {
    ...{ api, server, origin, post, signIn, get },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

Deno.test("a request to the page needs the cookie and the token", async () => {
  await using page = await opened();
  const { headers, response } = await page.signIn();
  const flags = response.headers.get("set-cookie") ?? "";
  for (const flag of ["HttpOnly", "SameSite=Strict", "Path=/"]) assert.ok(flags.includes(flag));
  assert.equal((await page.get("/api/state", headers)).status, 200);
  const { cookie } = headers;
  assert.equal((await page.get("/api/state", { cookie })).status, 401);
  assert.equal((await page.get("/api/state", { "x-pml-page": headers["x-pml-page"] })).status, 401);
  assert.equal((await page.get("/api/state")).status, 401);
  assert.equal((await page.get("/api/events", { cookie })).status, 401);
  const { status } = await page.post("/api/answer", {}, { cookie });
  assert.equal(status, 401);
  assert.deepEqual(page.api.acts, []);
});

Deno.test("files of the page need no sign-in, and their headers forbid frames and foreign code", async () => {
  await using page = await opened();
  for (const path of ["/", "/page.js", "/page.css"]) {
    const { status, response } = await page.get(path);
    assert.equal(status, 200, path);
    const policy = response.headers.get("content-security-policy") ?? "";
    for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"]) {
      assert.ok(policy.includes(part), part);
    }
    assert.doesNotMatch(policy, /unsafe/);
    assert.equal(response.headers.get("cache-control"), "no-store");
    assert.equal(response.headers.get("referrer-policy"), "no-referrer");
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.equal(response.headers.get("cross-origin-resource-policy"), "same-origin");
    assert.equal(response.headers.get("access-control-allow-origin"), null);
  }
});

Deno.test("a second use of a link ends the session and its stream, and both browsers get the reason", async () => {
  await using page = await opened();
  const link = page.server.link();
  const { headers } = await page.signIn(link);
  const signal = AbortSignal.timeout(10_000);
  const stream = await fetch(`${page.origin}/api/events`, { headers, signal });
  const { status, error } = await page.signIn(link);
  assert.deepEqual([status, error.code], [401, "LINK_USED"]);
  assert.match(await stream.text(), /"type":"state"/);
  const { status: after, text } = await page.get("/api/state", headers);
  assert.deepEqual([after, JSON.parse(text).error.code], [401, "SIGN_IN_EXPIRED"]);
  assert.ok(page.api.events.includes("page link used twice"));
  assert.equal(page.api.takers.size, 0);
});

Deno.test("a result does not reach the browser if its session has ended", async () => {
  await using page = await opened();
  const link = page.server.link();
  const { headers } = await page.signIn(link);
  const reading = Promise.withResolvers<unknown>();
  page.api.slow = reading.promise;
  const answer = page.get("/api/slow", headers);
  await page.signIn(link);
  reading.resolve({ secret: true });
  const { status, text } = await answer;
  assert.equal(status, 401);
  assert.doesNotMatch(text, /"secret"/);
});

Deno.test("an expired or guessed link is refused", async () => {
  let now = 0;
  await using page = await opened({ clock: { now: () => now } });
  const link = page.server.link();
  now = 60_000;
  for (const one of [link, `${page.origin}/#guess`, `${page.origin}/#`]) {
    const { status, error } = await page.signIn(one);
    assert.deepEqual([status, error.code], [401, "LINK_EXPIRED"]);
  }
});

/** Sends a signed-in request with other lines in its head, and returns its status. */
async function statusOf(
  { server, signIn }: Awaited<ReturnType<typeof opened>>,
  { first = "GET /api/state HTTP/1.1", host, more = [], body = "" }: {
    readonly first?: string;
    readonly host?: string;
    readonly more?: readonly string[];
    readonly body?: string;
  },
): Promise<number> {
  const { headers } = await signIn();
  const lines = [
    first,
    `Host: ${host ?? `127.0.0.1:${server.port}`}`,
    `Cookie: ${headers.cookie}`,
    `X-PML-Page: ${headers["x-pml-page"]}`,
    ...more,
    "Connection: close",
  ];
  const { status } = await rawHttp(server.port, [`${lines.join("\r\n")}\r\n\r\n${body}`]);
  return status;
}

Deno.test("the page refuses a request that names another host, as DNS rebinding does", async () => {
  await using page = await opened();
  const { port } = page.server;
  assert.equal(await statusOf(page, {}), 200);
  assert.equal(await statusOf(page, { host: `localhost:${port}` }), 200);
  const hosts = [
    "attacker.example",
    `attacker.example:${port}`,
    "127.0.0.1",
    "127.0.0.1:1",
    `127.0.0.2:${port}`,
    `[::1]:${port}`,
    `localhost.attacker.example:${port}`,
    "",
  ];
  for (const host of hosts) {
    const status = await statusOf(page, { host });
    assert.ok(status === 403 || status === 400, `${host}: ${status}`);
  }
  const twice = await statusOf(page, { more: ["Host: attacker.example"] });
  assert.ok(twice === 400 || twice === 403);
  assert.equal(
    await statusOf(page, { first: "GET http://attacker.example/api/state HTTP/1.1" }),
    403,
  );
});

Deno.test("the page refuses other origins, also those of this machine with another port", async () => {
  await using page = await opened();
  const { port } = page.server;
  assert.equal(await statusOf(page, { more: [`Origin: http://127.0.0.1:${port}`] }), 200);
  const origins = [
    "https://attacker.example",
    "http://127.0.0.1:5173",
    "http://127.0.0.1",
    `https://127.0.0.1:${port}`,
    `http://localhost:${port}`,
    "null",
    "",
  ];
  for (const origin of origins) {
    assert.equal(await statusOf(page, { more: [`Origin: ${origin}`] }), 403, origin);
  }
});

Deno.test("the page refuses requests that a browser marks as those of another site", async () => {
  await using page = await opened();
  assert.equal(await statusOf(page, { more: ["Sec-Fetch-Site: same-origin"] }), 200);
  for (const site of ["cross-site", "same-site", "none"]) {
    assert.equal(await statusOf(page, { more: [`Sec-Fetch-Site: ${site}`] }), 403, site);
  }
  const from = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"];
  const opening = [...from, "Sec-Fetch-Dest: document"];
  assert.equal(await statusOf(page, { first: "GET / HTTP/1.1", more: opening }), 200);
  const framed = [...from, "Sec-Fetch-Dest: iframe"];
  assert.equal(await statusOf(page, { first: "GET / HTTP/1.1", more: framed }), 403);
  assert.equal(await statusOf(page, { first: "GET /page.js HTTP/1.1", more: opening }), 403);
});

Deno.test("the page refuses the token of an identity or client in a request that is valid otherwise", async () => {
  await using page = await opened();
  assert.equal(await statusOf(page, { more: ["Authorization: Bearer abc"] }), 403);
  const { status } = await page.get("/", { authorization: "Bearer abc" });
  assert.equal(status, 403);
});

Deno.test("the page has no service worker, and clears the data of one that another program left", async () => {
  await using page = await opened();
  const cleared = '"cache", "storage"';
  for (const path of ["/", "/sw.js", "/page.min.js"]) {
    const { response } = await page.get(path, { "service-worker": "script" });
    const { status, headers } = response;
    assert.deepEqual([status, headers.get("clear-site-data")], [403, null], path);
  }
  const { response: usual } = await page.get("/");
  assert.deepEqual([usual.status, usual.headers.get("clear-site-data")], [200, null]);
  const response = await page.post("/api/clear", "", {});
  assert.deepEqual([response.status, response.headers.get("clear-site-data")], [200, cleared]);
  await response.body?.cancel();
});

Deno.test("a form of another page cannot act: only JSON is accepted", async () => {
  await using page = await opened();
  const { headers } = await page.signIn();
  const types = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""];
  for (const type of types) {
    const response = await page.post("/api/answer", "{}", { ...headers, "content-type": type });
    assert.equal(response.status, 415, type);
    await response.body?.cancel();
  }
  assert.deepEqual(page.api.acts, []);
});

Deno.test("a body that is too large, cut or no JSON reaches no action", async () => {
  await using page = await opened();
  const json = "Content-Type: application/json";
  const first = "POST /api/answer HTTP/1.1";
  const large = [json, `Content-Length: ${5 << 20}`];
  assert.equal(await statusOf(page, { first, more: large, body: "{" }), 413);
  assert.equal(await statusOf(page, { first, more: [json, "Content-Length: 1"], body: "{" }), 400);
  const { headers } = await page.signIn();
  const chunked = await page.post("/api/answer", `"${"x".repeat(5 << 20)}"`, headers)
    .then(({ status }) => status, () => 413);
  assert.equal(chunked, 413);
  const compressed = [json, "Content-Encoding: gzip", "Content-Length: 2"];
  assert.equal(await statusOf(page, { first, more: compressed, body: "{}" }), 415);
  assert.deepEqual(page.api.acts, []);
});

Deno.test("an unknown path gets 404", async () => {
  await using page = await opened();
  const paths = [
    "/api/state/",
    "/api//state",
    "/api/../api/state",
    "/api/%73tate",
    "/API/state",
    "/api/__proto__",
    "/api/constructor",
    "/../../etc/passwd",
    "/page.js/",
    "//",
    "/.pml",
    "/index.html",
  ];
  for (const path of paths) {
    const status = await statusOf(page, { first: `GET ${path} HTTP/1.1` });
    assert.ok(status === 404 || status === 400, `${path}: ${status}`);
  }
});

Deno.test("a method that an address does not have is refused", async () => {
  await using page = await opened();
  const cases = [
    "OPTIONS /api/state",
    "PUT /api/state",
    "DELETE /api/events",
    "POST /",
    "GET /api/sign-in",
    "HEAD /",
  ];
  for (const one of cases) {
    assert.equal(await statusOf(page, { first: `${one} HTTP/1.1` }), 405, one);
  }
});

Deno.test("two pages on one machine use different cookies", async () => {
  await using one = await opened();
  await using other = await opened();
  const { headers } = await one.signIn();
  const second = await other.signIn(other.server.link(), { cookie: headers.cookie });
  assert.notEqual(second.headers.cookie.split("=")[0], headers.cookie.split("=")[0]);
  // The cookie and the token of one page are worth nothing at the other.
  assert.equal((await other.get("/api/state", headers)).status, 401);
});

Deno.test("the page ends some time after its last tab, and not while a tab is open", async () => {
  await using page = await opened({ idleMs: 60 });
  const { headers } = await page.signIn();
  let isIdle = false;
  const idle = page.server.idle.then(() => isIdle = true);
  const leaving = new AbortController();
  const stream = await fetch(`${page.origin}/api/events`, { headers, signal: leaving.signal });
  await new Promise((done) => setTimeout(done, 200));
  assert.equal(isIdle, false);
  leaving.abort();
  await stream.body?.cancel().catch(() => {});
  await idle;
});

Deno.test("a browser that reads slowly gets the last state, and uses a bounded amount of memory", async () => {
  await using page = await opened();
  const { headers } = await page.signIn();
  const stream = await fetch(`${page.origin}/api/events`, { headers });
  const [take] = page.api.takers;
  const large = { ...STATE, version: "x".repeat(100_000) };
  for (let at = 0; at < 400; at++) take?.({ type: "state", state: { ...large, now: at } });
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/"now":399\D/.test(text.slice(-400_000))) {
    const { value, done } = await reader?.read() ?? { value: undefined, done: true };
    if (done) break;
    text += value;
  }
  const states = text.split("\n").filter(Boolean).map((line) => JSON.parse(line) as PageEvent);
  assert.ok(states.length < 300, `${states.length}`);
  await reader?.cancel();
});
