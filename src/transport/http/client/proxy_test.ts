import assert from "node:assert/strict";
import type { Socket } from "node:net";
import {
  CERTIFICATE,
  CLIENT_CERTIFICATE,
  CLIENT_KEY,
  OTHER_AUTHORITY,
  OTHER_CERTIFICATE,
  OTHER_KEY,
} from "../../../../tests/kit/certificate.ts";
import {
  ConnectProxy,
  type ConnectProxyOptions,
  TlsFront,
} from "../../../../tests/kit/connect_proxy.ts";
import { until } from "../../../../tests/kit/wait.ts";
import { PmlError } from "../../../core/errors.ts";
import { serving } from "../../../servers/http/_serving_test.ts";
import { GuardedFetch } from "./guarded_fetch.ts";
import type { Proxy } from "./proxy.ts";

const { signal } = new AbortController();
const NOBODY = new Set<string>();
const URL_THERE = "https://good.invalid/";

function through({ port }: ConnectProxy, { login = "", except = [] as string[] } = {}): Proxy {
  return { url: new URL(`http://${login}127.0.0.1:${port}`), except };
}

function fetching(proxy: () => Proxy | undefined): GuardedFetch {
  const lookup = () => Promise.reject(new Error("a name was looked up"));
  return new GuardedFetch({ proxy }, { ca: CERTIFICATE, lookup, connectMs: 5_000 });
}

async function errorOf(asked: Promise<unknown>): Promise<PmlError> {
  const error = await asked.then(() => undefined, (error) => error);
  assert.ok(error instanceof PmlError, Deno.inspect(error));
  return error;
}

Deno.test("GuardedFetch sends requests through a proxy, with its own TLS to the server", async () => {
  await using server = await serving((request, response) => response.end(request.headers.host), {
    isSecure: true,
  });
  await using proxy = await ConnectProxy.listen({
    behind: { "good.invalid:443": server.port, "good.invalid:8443": server.port },
    login: "me:se cret:ä",
  });
  using way = fetching(() => through(proxy, { login: "me:se%20cret%3A%C3%A4@" }));
  for (const _ of [1, 2, 3]) {
    const answer = await way.fetch(URL_THERE, { signal, named: NOBODY });
    assert.equal(await answer.text(), "good.invalid");
  }
  assert.deepEqual(proxy.asked, ["good.invalid:443"], "the connection is kept");
  await (await way.fetch("https://good.invalid.:8443/a", { signal, named: NOBODY })).text();
  assert.deepEqual(proxy.asked.slice(1), ["good.invalid:8443"]);
  for (const head of proxy.heads) assert.match(head, /^Host: good\.invalid:\d+\r$/im);
});

Deno.test("GuardedFetch uses no proxy for this machine or for excepted hosts", async () => {
  await using proxy = await ConnectProxy.listen();
  await using server = await serving((_, response) => response.end("here"));
  const except = ["skip.invalid", "*.corp", ".Lan.Example", "port.invalid:8443", "10.0.0.0/8"];
  using way = fetching(() => through(proxy, { except: [...except, "fd00::/8"] }));
  const named = new Set(["127.0.0.1", "10.1.2.3", "11.1.2.3", "[fd00::1]", "[fe80::1]"]);
  const here = await way.fetch(`http://127.0.0.1:${server.port}/`, { signal, named });
  assert.equal(await here.text(), "here");
  const to = async (host: string) => {
    const before = proxy.asked.length;
    // Connecting to some of these would take long.
    const late = AbortSignal.timeout(200);
    await way.fetch(`https://${host}/`, { signal: late, named }).then(() => {}, () => {});
    return proxy.asked.length > before;
  };
  const direct = ["skip.invalid", "a.b.corp", "x.lan.example", "port.invalid:8443"];
  for (const host of [...direct, "127.0.0.1:1", "localhost:1", "10.1.2.3", "[fd00::1]"]) {
    assert.equal(await to(host), false, host);
  }
  const others = ["a.skip.invalid", "acorp.example", "port.invalid", "11.1.2.3", "[fe80::1]"];
  for (const host of others) {
    const before = proxy.asked.length;
    const over = new AbortController();
    const going = way.fetch(`https://${host}/`, { signal: over.signal, named }).catch(() => {});
    await until(() => proxy.asked.length > before);
    over.abort();
    await going;
  }
});

Deno.test("GuardedFetch checks addresses, TLS and local names before it connects to the proxy", async () => {
  await using proxy = await ConnectProxy.listen();
  using way = fetching(() => through(proxy));
  const hosts = ["10.0.0.1", "[::ffff:10.0.0.1]", "169.254.169.254", "0x0a000001", "printer"];
  const names = ["a.local", "a.internal", "x.localhost", "router.lan", "b.home.arpa.", "printer."];
  for (const host of [...hosts, ...names]) {
    const { code, message } = await errorOf(
      way.fetch(`https://${host}/`, { signal, named: NOBODY }),
    );
    assert.equal(code, "PERMISSION_DENIED", message);
  }
  const named = new Set(["good.invalid"]);
  const plain = await errorOf(way.fetch("http://good.invalid/", { signal, named }));
  assert.equal(plain.code, "PERMISSION_DENIED");
  assert.deepEqual(proxy.asked, []);
  // The user configured the name, so the proxy may receive it.
  await errorOf(way.fetch("https://printer/", { signal, named: new Set(["printer"]) }));
  assert.deepEqual(proxy.asked, ["printer:443"]);
});

Deno.test("GuardedFetch refuses the certificate of another host through a proxy, and sends nothing", async () => {
  await using server = await serving((_, response) => response.end("there"));
  await using front = await TlsFront.before(server.port, {
    cert: OTHER_CERTIFICATE,
    key: OTHER_KEY,
  });
  await using right = await TlsFront.before(server.port);
  const behind = { "good.invalid:443": front.port, "other.invalid:443": right.port };
  await using proxy = await ConnectProxy.listen({ behind });
  using way = fetching(() => through(proxy));
  for (const host of ["good.invalid", "other.invalid"]) {
    const { code, message, detail } = await errorOf(
      way.fetch(`https://${host}/`, { signal, named: NOBODY }),
    );
    assert.equal(code, "UPSTREAM_DOWN");
    assert.match(message, /proxy "127.0.0.1:\d+": .*certificate/);
    assert.equal(detail?.may_have_run, false);
  }
  assert.deepEqual(proxy.asked, ["good.invalid:443", "other.invalid:443"]);
});

const ANSWERS: readonly (readonly [string, (socket: Socket) => void, RegExp])[] = [
  ["garbage", (socket) => socket.end("SSH-2.0-x\r\n\r\n"), /does not answer|answered [12]00/],
  [
    "a redirect",
    (socket) => socket.end("HTTP/1.1 302 F\r\nLocation: https://a.invalid/\r\n\r\n"),
    /the proxy "127.0.0.1:\d+" answered 302/,
  ],
  [
    "a refusal",
    (socket) => socket.end("HTTP/1.1 403 No\r\n\r\n<html>"),
    /the proxy "127.0.0.1:\d+" answered 403/,
  ],
  [
    "more than an answer",
    (socket) => socket.write("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK"),
    /does not answer|answered [12]00/,
  ],
  [
    "a provisional answer",
    (socket) => socket.write("HTTP/1.1 100 C\r\n\r\n"),
    /does not answer|answered [12]00/,
  ],
  ["endless headers", endless, /does not answer|answered [12]00/],
  [
    "an end in the middle",
    (socket) => socket.end("HTTP/1.1 200 OK\r\nA: b"),
    /does not answer/,
  ],
  [
    "an end after its answer",
    (socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"),
    /through the proxy .* could not be made/,
  ],
];

function endless(socket: Socket): void {
  socket.write("HTTP/1.1 200 OK\r\n");
  const more = () => {
    while (!socket.destroyed && socket.write(`a: ${"b".repeat(4_000)}\r\n`));
    if (!socket.destroyed) socket.once("drain", more);
  };
  more();
}

for (const [what, answer, why] of ANSWERS) {
  const options: ConnectProxyOptions = { answer };
  Deno.test(`GuardedFetch explains the failure if a proxy answers ${what}, and closes the connection`, async () => {
    await using proxy = await ConnectProxy.listen(options);
    using way = fetching(() => through(proxy));
    const error = await errorOf(way.fetch(URL_THERE, { signal, named: NOBODY }));
    assert.equal(error.code, "UPSTREAM_DOWN");
    assert.match(error.message, why);
    assert.deepEqual(error.detail, { may_have_run: false });
    await until(() => proxy.open === 0);
  });
}

Deno.test("GuardedFetch reports a proxy that requires a password or is unreachable", async () => {
  let port = 0;
  {
    await using proxy = await ConnectProxy.listen({ login: "me:right-password" });
    ({ port } = proxy);
    for (const login of ["", "me:wrong-password@"]) {
      using way = fetching(() => through(proxy, { login }));
      const error = await errorOf(way.fetch(URL_THERE, { signal, named: NOBODY }));
      assert.match(
        error.message,
        new RegExp(`proxy "127.0.0.1:${port}" .*password`),
      );
      assert.match(error.hint ?? "", /\$\{USER\}:\$\{PASSWORD\}@HOST/);
      assert.doesNotMatch(Deno.inspect(error), /wrong-password|bWU6/);
    }
  }
  const url = new URL(`http://127.0.0.1:${port}`);
  using way = fetching(() => ({ url, except: [] }));
  const error = await errorOf(way.fetch(URL_THERE, { signal, named: NOBODY }));
  assert.equal(
    error.message,
    `Cannot reach "good.invalid:443": the proxy "127.0.0.1:${port}" does not answer (ECONNREFUSED)`,
  );
  assert.deepEqual(error.detail, { may_have_run: false });
});

Deno.test("GuardedFetch disconnects from a silent proxy after a timeout or an abort", async () => {
  await using proxy = await ConnectProxy.listen({ answer: () => {} });
  using way = new GuardedFetch({ proxy: () => through(proxy) }, { connectMs: 300 });
  const error = await errorOf(way.fetch(URL_THERE, { signal, named: NOBODY }));
  assert.match(error.message, /proxy ".*": .*in time/);
  assert.deepEqual(error.detail, { may_have_run: false });
  await until(() => proxy.open === 0);
  using patient = fetching(() => through(proxy));
  const abort = new AbortController();
  const reason = new Error("no more");
  const asked = patient.fetch(URL_THERE, { signal: abort.signal, named: NOBODY });
  await until(() => proxy.asked.length === 2);
  abort.abort(reason);
  await assert.rejects(asked, reason);
  await until(() => proxy.open === 0);
});

Deno.test("GuardedFetch reports that a request may have run if the proxy breaks later, and reconnects", async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  let hangs = true;
  await using server = await serving((_, response) => {
    if (!hangs) return void response.end("there");
    resolve();
  }, { isSecure: true });
  const behind = { "good.invalid:443": server.port };
  let proxy: ConnectProxy | undefined = await ConnectProxy.listen({ behind });
  await using second = await ConnectProxy.listen({ behind });
  using way = fetching(() => through(proxy ?? second));
  const answer = errorOf(way.fetch(URL_THERE, { signal, named: NOBODY }));
  await asked;
  await proxy[Symbol.asyncDispose]();
  const error = await answer;
  assert.match(error.message, /the connection broke/);
  assert.deepEqual(error.detail, { may_have_run: true });
  // The configuration now contains another proxy.
  proxy = undefined;
  hangs = false;
  const again = await way.fetch(URL_THERE, { signal, named: NOBODY });
  assert.equal(await again.text(), "there");
  assert.deepEqual(second.asked, ["good.invalid:443"]);
});

Deno.test("GuardedFetch sends a client certificate through a proxy, and reports if one is required", async () => {
  await using server = await serving((_, response) => response.end("there"));
  await using front = await TlsFront.before(server.port, {
    ...{ ca: OTHER_AUTHORITY, requestCert: true, rejectUnauthorized: true },
  });
  const behind = { "good.invalid:443": front.port, "good.invalid:8443": front.port };
  await using proxy = await ConnectProxy.listen({ behind });
  const folder = await Deno.makeTempDir();
  const [cert, key] = [`${folder}/cert.pem`, `${folder}/key.pem`];
  await Deno.writeTextFile(cert, CLIENT_CERTIFICATE);
  await Deno.writeTextFile(key, CLIENT_KEY);
  using way = fetching(() => through(proxy));
  const certificates = { origin: "https://good.invalid", cert, key };
  const asked = (url: string, more = {}) => way.fetch(url, { signal, named: NOBODY, ...more });
  assert.equal(await (await asked(URL_THERE, { certificates })).text(), "there");
  const wants = async (url: string, more = {}) => {
    const error = await errorOf(asked(url, more));
    assert.match(error.message, /a client certificate/);
    assert.deepEqual(error.detail, { may_have_run: false });
  };
  // Neither a reused connection nor the files serve other requests or another origin.
  for (let round = 0; round < 5; round++) await wants(URL_THERE);
  await wants("https://good.invalid:8443/", { certificates });
  assert.deepEqual(front.clients, ["pml client"]);
  await Deno.remove(folder, { recursive: true });
});
