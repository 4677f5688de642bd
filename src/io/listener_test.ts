import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { OTHER_AUTHORITY, OTHER_CERTIFICATE, OTHER_KEY } from "../../tests/kit/certificate.ts";
import { within } from "../../tests/kit/wait.ts";
import { listen } from "./listener.ts";

Deno.test("an error after a complete body is not reported to the reader of the body", async () => {
  const messages: string[] = [];
  await using listener = await listen({
    ...{ host: "127.0.0.1", port: 0, what: "a test" },
    answer: (request, response) => {
      request.on("error", ({ message }) => messages.push(message));
      request.once("end", () => setTimeout(() => response.end("read"), 50));
      request.resume();
    },
  });
  const sent = connect(Number(new URL(listener.origin).port), "127.0.0.1");
  sent.write("PUT / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\n\r\n12345{}");
  const answer = await text(sent).catch(() => "");
  assert.deepEqual([messages, answer.startsWith("HTTP/1.1 2")], [[], false]);
});

Deno.test("an error in a body is reported to the reader of the body", async () => {
  const messages: string[] = [];
  await using listener = await listen({
    ...{ host: "127.0.0.1", port: 0, what: "a test" },
    answer: (request, response) => {
      request.on("error", ({ message }) => {
        messages.push(message);
        response.writeHead(400, { connection: "close" }).end();
      });
      request.resume();
    },
  });
  const sent = connect(Number(new URL(listener.origin).port), "127.0.0.1");
  await once(sent, "connect");
  sent.write("PUT / HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nno length");
  assert.match(await text(sent), /^HTTP\/1\.1 400 /);
  assert.equal(messages.length, 1);
});

const TLS = { cert: OTHER_CERTIFICATE, key: OTHER_KEY };

for (const tls of [undefined, TLS]) {
  const name = tls === undefined ? "" : ", over TLS";

  Deno.test(`a connection beyond the limit closes the oldest quiet one${name}`, async () => {
    const held = Promise.withResolvers<void>();
    const refused: number[] = [];
    await using listener = await listen({
      ...{ host: "127.0.0.1", port: 0, what: "a test", connections: 3, tls },
      onRefused: (status) => refused.push(status),
      answer: async ({ url }, response) => {
        if (url === "/held") await held.promise;
        response.end("said");
      },
    });
    const port = Number(new URL(listener.origin).port);
    const open = async (path?: string) => {
      const socket = tls === undefined
        ? connect(port, "127.0.0.1")
        : connectTls({ port, host: "localhost", ca: [OTHER_AUTHORITY] });
      socket.on("error", () => {});
      const closed = new Promise<void>((resolve) => socket.once("close", resolve));
      const ended = within(closed, { ms: 5_000, what: () => "it stays open" });
      ended.catch(() => {});
      await once(socket, tls === undefined ? "connect" : "secureConnect").catch(() => {});
      const ask = async (path: string) => {
        socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
        if (path !== "/held") await once(socket, "data");
      };
      if (path !== undefined) await ask(path);
      return { socket, ended, ask };
    };
    const busy = await open("/held");
    const idle = await open("/");
    const silent = await open();
    const next = await open("/");
    await silent.ended;
    await idle.ask("/");
    const last = await open("/held");
    await next.ended;
    await open("/held");
    await idle.ended;
    // All connections are busy now.
    await (await open()).ended;
    held.resolve();
    for (const { socket } of [busy, last]) assert.match(`${await once(socket, "data")}`, /said/);
    assert.deepEqual(refused, [503, 503, 503, 503]);
  });
}

Deno.test("drain() does not wait for connections without a request", async () => {
  await using listener = await listen({
    ...{ host: "127.0.0.1", port: 0, what: "a test" },
    answer: (request, response) => {
      request.resume();
      setTimeout(() => response.end("late"), 100);
    },
  });
  const texts = ["", "GET / HT", "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"];
  const sockets = await Promise.all(texts.map(async (one) => {
    const socket = connect(Number(new URL(listener.origin).port), "127.0.0.1");
    await once(socket, "connect");
    if (one !== "") socket.write(one);
    return socket;
  }));
  const answers = sockets.map((socket) => text(socket).catch(() => ""));
  await new Promise((resolve) => setTimeout(resolve, 50));
  const since = performance.now();
  await listener.drain(5_000);
  assert.ok(performance.now() - since < 2_500, "it waited for them");
  assert.deepEqual((await Promise.all(answers)).map((one) => one.endsWith("late")), [
    false,
    false,
    true,
  ]);
});
