import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { CERTIFICATE, CERTIFICATE_KEY } from "../../tests/kit/certificate.ts";
import { TcpSink } from "../../tests/kit/sinks.ts";
import { PmlError } from "../core/errors.ts";
import { GuardedFetch } from "./guarded_fetch.ts";

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

const { signal } = new AbortController();
const HERE = new Set(["127.0.0.1", "localhost", "[::1]"]);

Deno.test("GuardedFetch refuses whatever is not public, however it is written, and connects to nothing", async () => {
  await using sink = new TcpSink();
  using way = new GuardedFetch();
  const hosts = "127.0.0.1 127.1 0x7f000001 2130706433 0177.0.0.1 0 [::ffff:7f00:1] [::1] [::] " +
    "[64:ff9b::7f00:1] [64:ff9b::a9fe:a9fe] 169.254.169.254 100.64.0.1 100.127.255.255 10.0.0.1 " +
    "192.168.0.1 172.16.0.1 localhost localhost. LOCALHOST 127.0.0.1. ①②⑦.0.0.1 127。0。0。1 " +
    "[fe80::1] [fd00::1] [2002:7f00:1::] [::ffff:127.0.0.1] 224.0.0.1 255.255.255.255";
  for (const host of hosts.split(" ")) {
    const refused = { code: "PERMISSION_DENIED", message: /its address is not public$/ };
    await assert.rejects(
      way.fetch(`https://${host}:${sink.port}/CANARY`, { signal, named: none }),
      refused,
      host,
    );
    await assert.rejects(
      way.fetch(`http://${host}:${sink.port}/CANARY`, { signal, named: none }),
      { code: "PERMISSION_DENIED", message: /it is not https/ },
      host,
    );
  }
  const others: readonly (readonly [string, RegExp])[] = [
    [`https://user:CANARY@example.com/`, /the address holds a name or a password$/],
    [`https://CANARY@127.0.0.1:${sink.port}/`, /the address holds a name or a password$/],
    [`file:///etc/passwd`, /it is not https$/],
    [`data:text/plain,CANARY`, /it is not https$/],
    [`//127.0.0.1/CANARY`, /it is no URL$/],
    [`https://CANARY CANARY/`, /it is no URL$/],
    [`http://example.com/CANARY`, /it is not https/],
  ];
  for (const [url, message] of others) {
    await assert.rejects(way.fetch(url, { signal, named: HERE }), (error) => {
      assert.ok(error instanceof PmlError);
      assert.equal(error.code, "PERMISSION_DENIED");
      assert.match(error.message, message);
      assert.doesNotMatch(JSON.stringify(error) + error.message + error.hint, /CANARY/);
      return true;
    });
  }
  sink.assertSilent();
});

Deno.test("GuardedFetch refuses every name that leads to one address that is not public", async () => {
  await using sink = new TcpSink();
  const octet = fc.integer({ min: 0, max: 255 });
  const open = { address: "8.8.8.8", family: 4 };
  const closed = fc.oneof(
    fc.tuple(fc.constantFrom(0, 10, 127, 224, 240), octet, octet, octet).map((ip) => ip.join(".")),
    octet.map((last) => `192.168.${last}.1`),
    fc.constantFrom("::1", "::ffff:7f00:1", "fe80::1%lo", "64:ff9b::7f00:1", "fd00::1"),
  );
  await fc.assert(
    fc.asyncProperty(closed, fc.boolean(), async (address, isLast) => {
      const bad = { address, family: address.includes(":") ? 6 : 4 };
      using way = new GuardedFetch({
        lookup: () => Promise.resolve(isLast ? [open, bad] : [bad, open]),
      });
      await assert.rejects(
        way.fetch(`https://rebound.invalid:${sink.port}/`, { signal, named: none }),
        {
          code: "PERMISSION_DENIED",
          message: `Cannot reach "rebound.invalid": its address is not public`,
        },
      );
    }),
    { seed: 5, numRuns: 60 },
  );
  sink.assertSilent();
});

Deno.test("GuardedFetch looks a name up once for a connection, and goes to what it found over TLS that names the host", async () => {
  const looked: string[] = [];
  await using server = await serving((request, response) => response.end(request.headers.host), {
    isSecure: true,
  });
  using way = new GuardedFetch({
    ca: CERTIFICATE,
    lookup: (host) => {
      looked.push(host);
      return Promise.resolve([{ address: "127.0.0.1", family: 4 }]);
    },
  });
  const url = `https://good.invalid.:${server.port}/`;
  const named = new Set(["good.invalid", "bad.invalid"]);
  for (let round = 0; round < 3; round++) {
    const answer = await way.fetch(url, { signal, named });
    assert.equal(await answer.text(), `good.invalid:${server.port}`);
  }
  assert.deepEqual(looked, ["good.invalid"], "one connection served them all");
  // The connection that is open was made for somebody who may go there.
  await assert.rejects(way.fetch(url, { signal, named: none }), { code: "PERMISSION_DENIED" });
  await assert.rejects(way.fetch(`https://bad.invalid:${server.port}/`, { signal, named }), {
    code: "UPSTREAM_DOWN",
    message:
      `Cannot reach "bad.invalid": its certificate does not hold (ERR_TLS_CERT_ALTNAME_INVALID)`,
  });
  using strict = new GuardedFetch();
  await assert.rejects(
    strict.fetch(`https://localhost:${server.port}/`, { signal, named: HERE }),
    { message: /certificate does not hold/, detail: { may_have_run: false } },
  );
});

Deno.test("GuardedFetch speaks plain HTTP to this machine only, where the person named it", async () => {
  await using server = await serving((_, response) => response.end("here"));
  using way = new GuardedFetch();
  for (const named of [HERE, new Set([`127.0.0.1:${server.port}`])]) {
    const answer = await way.fetch(`http://127.0.0.1:${server.port}/`, { signal, named });
    assert.equal(await answer.text(), "here");
  }
  const elsewhere = new Set(["127.0.0.1:1", "internal.invalid", "10.0.0.1", "localhost"]);
  for (const host of ["127.0.0.1", "internal.invalid", "10.0.0.1"]) {
    await assert.rejects(
      way.fetch(`http://${host}:${server.port}/`, { signal, named: elsewhere }),
      { code: "PERMISSION_DENIED", message: /it is not https/ },
    );
  }
  using rebound = new GuardedFetch({
    lookup: () => Promise.resolve([{ address: "8.8.8.8", family: 4 }]),
  });
  await assert.rejects(rebound.fetch(`http://localhost:${server.port}/`, { signal, named: HERE }), {
    message: `Cannot reach "localhost": it is not this machine`,
  });
});

Deno.test("GuardedFetch lets no variable of the environment lead it elsewhere, or take certificates that do not hold", async () => {
  await using proxy = new TcpSink();
  await using plain = await serving((_, response) => response.end("direct"));
  await using secure = await serving((_, response) => response.end("unseen"), { isSecure: true });
  const code = `
    import { GuardedFetch } from ${JSON.stringify(import.meta.resolve("./guarded_fetch.ts"))};
    using way = new GuardedFetch();
    const named = new Set(["127.0.0.1"]);
    const signal = AbortSignal.timeout(5_000);
    const ask = (url) => way.fetch(url, { signal, named }).then((answer) => answer.text());
    console.log(await ask("http://127.0.0.1:${plain.port}/"));
    console.log(await ask("https://127.0.0.1:${secure.port}/").catch(({ message }) => message));`;
  const away = `http://127.0.0.1:${proxy.port}`;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", "--quiet", code],
    env: {
      HTTP_PROXY: away,
      HTTPS_PROXY: away,
      ALL_PROXY: away,
      NO_PROXY: "",
      NODE_USE_ENV_PROXY: "1",
      NODE_TLS_REJECT_UNAUTHORIZED: "0",
    },
  }).output();
  const [text, refused] = new TextDecoder().decode(stdout).split("\n");
  assert.equal(text, "direct", new TextDecoder().decode(stderr));
  assert.match(refused ?? "", /its certificate does not hold/);
  proxy.assertSilent();
});

Deno.test("GuardedFetch sends what it was given, asks for nothing compressed, and gives a redirect as an answer", async () => {
  const seen: unknown[] = [];
  await using server = await serving(async (request, response) => {
    const body = (await Array.fromAsync(request)).join("");
    const { method, url, headers } = request;
    seen.push({ method, url, body, of: headers["x-of"], encoding: headers["accept-encoding"] });
    response.writeHead(302, { location: "http://10.0.0.1/", "set-cookie": ["a=1", "b=2"] }).end();
  });
  using way = new GuardedFetch();
  const url = `http://127.0.0.1:${server.port}/a?b=c`;
  const body = "héllo";
  const headers = { "X-Of": "me" };
  const answer = await way.fetch(url, { method: "POST", headers, body, signal, named: HERE });
  assert.equal(answer.status, 302);
  assert.equal(answer.headers.get("location"), "http://10.0.0.1/");
  assert.deepEqual(answer.headers.getSetCookie(), ["a=1", "b=2"]);
  const expected = { method: "POST", url: "/a?b=c", body, of: "me", encoding: "identity" };
  assert.deepEqual(seen, [expected]);
});

Deno.test("GuardedFetch refuses headers that cannot be sent, and repeats no value", async () => {
  await using sink = new TcpSink();
  using way = new GuardedFetch();
  const bad: readonly Record<string, string>[] = [
    { "x-key": "CANARY\nx: y" },
    { "x-key": "CANARY\0" },
    { "x-key": "CANARY→" },
    { "x key": "CANARY" },
    { "": "CANARY" },
    { "Host": "CANARY" },
    { "Content-Length": "1" },
    { "transfer-encoding": "chunked" },
  ];
  for (const headers of bad) {
    const asked = way.fetch(`http://127.0.0.1:${sink.port}/`, { headers, signal, named: HERE });
    await assert.rejects(asked, (error) => {
      assert.ok(error instanceof PmlError);
      assert.match(error.message, /header .* cannot be sent$/);
      assert.doesNotMatch(Deno.inspect(error), /CANARY/);
      return true;
    });
  }
  sink.assertSilent();
});

Deno.test("GuardedFetch gives a body as it comes, and waits for whom that is too fast", async () => {
  const piece = new Uint8Array(65_536).fill(120);
  let written = 0;
  await using server = await serving((request, response) => {
    if (request.url === "/events") return void response.write("one\n");
    const more = () => {
      while (written < 400) {
        written++;
        if (!response.write(piece)) return void response.once("drain", more);
      }
      response.end();
    };
    more();
  });
  using way = new GuardedFetch();
  const at = (path: string) =>
    way.fetch(`http://127.0.0.1:${server.port}${path}`, { signal, named: HERE });
  const events = (await at("/events")).body!.getReader();
  assert.equal(new TextDecoder().decode((await events.read()).value), "one\n");
  await events.cancel();
  const answer = await at("/");
  const reader = answer.body!.getReader();
  let size = (await reader.read()).value!.length;
  // Other requests take their turns meanwhile; what the kernel holds is a few MB.
  for (let round = 0; round < 50; round++) await (await at("/events")).body!.cancel();
  assert.ok(written < 300, `${written} of 400 pieces were sent to nobody`);
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    size += next.value.length;
  }
  assert.equal(size, 400 * piece.length);
});

Deno.test("GuardedFetch can be aborted while it looks up, connects, waits and reads", async () => {
  await using sink = new TcpSink();
  const reason = new Error("no more");
  const slow = { lookup: () => new Promise<never>(() => {}) };
  const stages: readonly (readonly [string, ConstructorParameters<typeof GuardedFetch>[0]])[] = [
    ["https://slow.invalid/", slow],
    [`http://127.0.0.1:${sink.port}/`, {}],
    // Nobody speaks TLS there.
    [`https://127.0.0.1:${sink.port}/`, {}],
  ];
  for (const [url, options] of stages) {
    using opened = new GuardedFetch(options);
    const abort = new AbortController();
    const before = sink.received.length;
    const asked = opened.fetch(url, { signal: abort.signal, named: HERE });
    while (options !== slow && sink.received.length === before) await turn();
    abort.abort(reason);
    await assert.rejects(asked, reason);
    await assert.rejects(opened.fetch(url, { signal: abort.signal, named: HERE }), reason);
  }

  const gone = Promise.withResolvers<void>();
  await using server = await serving((_, response) => {
    response.write("one");
    response.once("close", gone.resolve);
  });
  using opened = new GuardedFetch();
  const abort = new AbortController();
  const url = `http://127.0.0.1:${server.port}/`;
  const reader = (await opened.fetch(url, { signal: abort.signal, named: HERE })).body!.getReader();
  await reader.read();
  abort.abort(reason);
  await assert.rejects(reader.read(), reason);
  await gone.promise;
});

Deno.test("GuardedFetch tells what was never sent from what may have been read", async () => {
  using way = new GuardedFetch({
    lookup: (host) => {
      const error = Object.assign(new Error("CANARY"), { code: "ENOTFOUND" });
      return host === "gone.invalid" ? Promise.reject(error) : Promise.resolve([]);
    },
  });
  const closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = closed.addr;
  closed.close();
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["https://gone.invalid/?key=CANARY", "its name leads to no address", false],
    ["https://none.invalid/?key=CANARY", "its name leads to no address", false],
    [`http://127.0.0.1:${port}/CANARY`, "it refused the connection", false],
    [`http://127.0.0.1:${once("")}/CANARY`, "the connection broke", true],
    [`http://127.0.0.1:${once("SSH-2.0 CANARY\r\n")}/`, "the connection broke", true],
    [`https://127.0.0.1:${once("CANARY\r\n\r\n")}/`, "its certificate does not hold", false],
    [
      `http://127.0.0.1:${once(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(99_999)}`)}/`,
      "the connection broke",
      true,
    ],
  ];
  for (const [url, why, sent] of cases) {
    await assert.rejects(way.fetch(url, { signal, named: HERE }), (error) => {
      assert.ok(error instanceof PmlError);
      assert.equal(error.code, "UPSTREAM_DOWN", url);
      assert.ok(error.message.includes(why), `${url} ${error.message}`);
      assert.deepEqual(error.detail, { may_have_run: sent }, url);
      assert.doesNotMatch(Deno.inspect(error), /CANARY/);
      return true;
    });
  }
});

Deno.test("GuardedFetch waits for a connection for a while only, and for an answer longer", async () => {
  await using sink = new TcpSink();
  const connectMs = 40;
  using silent = new GuardedFetch({ connectMs });
  using slow = new GuardedFetch({ connectMs, lookup: () => new Promise<never>(() => {}) });
  for (const way of [silent, slow]) {
    const url = way === slow ? "https://slow.invalid/" : `https://127.0.0.1:${sink.port}/`;
    await assert.rejects(way.fetch(url, { signal, named: HERE }), (error) => {
      assert.ok(error instanceof PmlError);
      assert.match(error.message, /no connection came about in time$/);
      assert.deepEqual(error.detail, { may_have_run: false });
      return true;
    });
  }
  await using server = await serving((_, response) => {
    setTimeout(() => response.end("late"), 3 * connectMs);
  });
  const url = `http://127.0.0.1:${server.port}/`;
  assert.equal(await (await silent.fetch(url, { signal, named: HERE })).text(), "late");
});

Deno.test("GuardedFetch tells an answer that is cut off, compressed, or none at all", async () => {
  using way = new GuardedFetch();
  const read = async (answer: string) => {
    const url = `http://127.0.0.1:${once(answer)}/`;
    return await (await way.fetch(url, { signal, named: HERE })).text();
  };
  const cut = { code: "UPSTREAM_DOWN", message: /the connection broke/ };
  await assert.rejects(read("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfour"), cut);
  await assert.rejects(
    read("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfour\r\n"),
    cut,
  );
  await assert.rejects(read("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nxx"), {
    code: "UPSTREAM_PROTOCOL",
    message: /is compressed/,
  });
  await assert.rejects(read("HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n"), {
    code: "UPSTREAM_PROTOCOL",
    message: /its status is 999$/,
  });
  assert.equal(await read("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nto the end"), "to the end");
  assert.equal(await read("HTTP/1.1 204 None\r\n\r\n"), "");
});

Deno.test("GuardedFetch keeps connections, and takes none that the server has ended meanwhile", async () => {
  const ports = new Set<number | undefined>();
  await using server = await serving((request, response) => {
    ports.add(request.socket.remotePort);
    response.end("here");
  });
  using way = new GuardedFetch();
  const ask = async () => {
    const answer = await way.fetch(`http://127.0.0.1:${server.port}/`, { signal, named: HERE });
    assert.equal(await answer.text(), "here");
  };
  for (let round = 0; round < 20; round++) await ask();
  assert.equal(ports.size, 1);
  server.close();
  await turn();
  await ask();
  assert.equal(ports.size, 2);
  await Promise.all(Array.from({ length: 100 }, ask));
  const many = ports.size;
  await Promise.all(Array.from({ length: 64 }, ask));
  assert.equal(ports.size, many, "as many as are kept are enough");
});

const none: ReadonlySet<string> = new Set();

async function turn(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Answers one connection with these bytes, once it was spoken to, and ends it. */
function once(answer: string): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  listener.accept().then(async (connection) => {
    listener.close();
    await connection.read(new Uint8Array(65_536));
    await connection.write(new TextEncoder().encode(answer)).catch(() => {});
    connection.close();
  });
  return listener.addr.port;
}

interface Serving extends AsyncDisposable {
  readonly port: number;
  /** Ends the connections. */
  readonly close: () => void;
}

async function serving(
  answering: Answering,
  { isSecure = false }: { readonly isSecure?: boolean } = {},
): Promise<Serving> {
  const server: Server = isSecure
    ? createSecureServer({ cert: CERTIFICATE, key: CERTIFICATE_KEY }, answering)
    : createServer(answering);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  return {
    port: (server.address() as AddressInfo).port,
    close: () => server.closeAllConnections(),
    [Symbol.asyncDispose]: async () => {
      const ended = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await ended;
    },
  };
}
