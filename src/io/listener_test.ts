import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { listen } from "./listener.ts";

Deno.test("What breaks after a body is not told to whoever read the body", async () => {
  const told: string[] = [];
  await using listener = await listen({
    ...{ host: "127.0.0.1", port: 0, what: "a test" },
    answer: (request, response) => {
      request.on("error", ({ message }) => told.push(message));
      request.once("end", () => setTimeout(() => response.end("read"), 50));
      request.resume();
    },
  });
  const sent = connect(Number(new URL(listener.origin).port), "127.0.0.1");
  sent.write("PUT / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\n\r\n12345{}");
  const answer = await text(sent).catch(() => "");
  assert.deepEqual([told, answer.startsWith("HTTP/1.1 2")], [[], false]);
});

Deno.test("A body that breaks is told to whoever reads it", async () => {
  const told: string[] = [];
  await using listener = await listen({
    ...{ host: "127.0.0.1", port: 0, what: "a test" },
    answer: (request, response) => {
      request.on("error", ({ message }) => {
        told.push(message);
        response.writeHead(400, { connection: "close" }).end();
      });
      request.resume();
    },
  });
  const sent = connect(Number(new URL(listener.origin).port), "127.0.0.1");
  await once(sent, "connect");
  sent.write("PUT / HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nno length");
  assert.match(await text(sent), /^HTTP\/1\.1 400 /);
  assert.equal(told.length, 1);
});
