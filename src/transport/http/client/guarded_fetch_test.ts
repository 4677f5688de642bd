import assert from "node:assert/strict";
import { freePort } from "../../../../tests/kit/free_port.ts";
import { TcpSink } from "../../../../tests/kit/sinks.ts";
import { PmlError } from "../../../core/errors.ts";
import { serving } from "../../../servers/http/_serving_test.ts";
import { GuardedFetch } from "./guarded_fetch.ts";

const { signal } = new AbortController();
const HERE = new Set(["127.0.0.1", "localhost", "[::1]"]);

Deno.test("GuardedFetch sends a request unchanged without compression, and returns a redirect", async () => {
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

Deno.test("GuardedFetch refuses invalid headers without repeating their values", async () => {
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

Deno.test("GuardedFetch streams a body, and applies backpressure for a slow reader", async () => {
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
  // Each round yields to other work. The buffers of the system contain a few MB.
  for (let round = 0; round < 50; round++) await (await at("/events")).body!.cancel();
  assert.ok(written < 300, `${written} of 400 pieces were sent without a reader`);
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    size += next.value.length;
  }
  assert.equal(size, 400 * piece.length);
});

Deno.test("GuardedFetch can be aborted while it resolves, connects, waits and reads", async () => {
  await using sink = new TcpSink();
  const reason = new Error("no more");
  const slow = { lookup: () => new Promise<never>(() => {}) };
  const stages: readonly (readonly [string, ConstructorParameters<typeof GuardedFetch>[1]])[] = [
    ["https://slow.invalid/", slow],
    [`http://127.0.0.1:${sink.port}/`, {}],
    // The listener does not speak TLS.
    [`https://127.0.0.1:${sink.port}/`, {}],
  ];
  for (const [url, options] of stages) {
    using opened = new GuardedFetch(undefined, options);
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

Deno.test("GuardedFetch reports whether a failed request may have been received", async () => {
  using way = new GuardedFetch(undefined, {
    lookup: (host) => {
      const error = Object.assign(new Error("CANARY"), { code: "ENOTFOUND" });
      return host === "gone.invalid" ? Promise.reject(error) : Promise.resolve([]);
    },
  });
  const port = freePort();
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["https://gone.invalid/?key=CANARY", "its name has no address", false],
    ["https://none.invalid/?key=CANARY", "its name has no address", false],
    [`http://127.0.0.1:${port}/CANARY`, `reach "127.0.0.1:${port}": connection refused`, false],
    [`http://127.0.0.1:${once("")}/CANARY`, "the connection broke", true],
    [`http://127.0.0.1:${once("SSH-2.0 CANARY\r\n")}/`, "the connection broke", true],
    [`https://127.0.0.1:${once("CANARY\r\n\r\n")}/`, "its certificate is not valid", false],
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
      const unresolved = url.includes(".invalid/") ? { unresolved: true } : {};
      assert.deepEqual(error.detail, { may_have_run: sent, ...unresolved }, url);
      assert.doesNotMatch(Deno.inspect(error), /CANARY/);
      return true;
    });
  }
});

Deno.test("GuardedFetch limits the time of a connection, and waits longer for an answer", async () => {
  await using sink = new TcpSink();
  const connectMs = 40;
  using silent = new GuardedFetch(undefined, { connectMs });
  using slow = new GuardedFetch(undefined, {
    connectMs,
    lookup: () => new Promise<never>(() => {}),
  });
  for (const way of [silent, slow]) {
    const url = way === slow ? "https://slow.invalid/" : `https://127.0.0.1:${sink.port}/`;
    await assert.rejects(way.fetch(url, { signal, named: HERE }), (error) => {
      assert.ok(error instanceof PmlError);
      assert.match(error.message, /in time$/);
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

Deno.test("GuardedFetch reports a truncated, compressed or invalid answer", async () => {
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

Deno.test("GuardedFetch reuses connections, except those that the server has closed", async () => {
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

/** Waits until the end of a connection arrives, also on a busy machine. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 50));
}

/**
 * Listens for one connection. Sends these bytes after it received data, and ends the connection.
 */
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
