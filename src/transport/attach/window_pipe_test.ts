/**
 * Other systems have no named pipes, so sockets take their place in these tests.
 *
 * @module
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { Scratch } from "../../config/_scratch_test.ts";
import { connectToPipe, listenAtPipe } from "./window_pipe.ts";

const IS_WINDOWS = Deno.build.os === "windows";

function pipeIn(scratch: Scratch): string {
  return IS_WINDOWS ? `\\\\.\\pipe\\pml-test-${crypto.randomUUID()}` : join(scratch.root, "pipe");
}

/** Opens a listener and a connection to it. */
async function openPair(scratch: Scratch) {
  const file = join(scratch.root, "file");
  const { promise: taken, resolve } = Promise.withResolvers<Duplex>();
  const server = await listenAtPipe(file, resolve, pipeIn(scratch));
  const client = await connectToPipe(file);
  assert.ok(server !== undefined && client !== undefined);
  const own = await taken;
  const close = async () => {
    for (const each of [client, own]) each.destroy();
    const closed = once(server, "close");
    server.close();
    await closed;
  };
  return { server: own, client, close };
}

Deno.test("a window pipe passes bytes both ways, and the end of each side", async () => {
  using scratch = new Scratch();
  const { server, client, close } = await openPair(scratch);
  const [large, answer] = ["x".repeat(5_000_000), "y".repeat(3_000_000)];
  client.write(large);
  client.end("last");
  server.write(answer);
  const [there, back] = await Promise.all([text(server), text(client)]);
  assert.ok(there === `${large}last`, `${there.length} characters`);
  assert.ok(back === answer, `${back.length} characters`);
  await close();
});

Deno.test("a window pipe ends when the other process closes it", async () => {
  using scratch = new Scratch();
  const { server, client, close } = await openPair(scratch);
  client.write("half");
  await once(server, "readable");
  client.destroy();
  assert.equal(await text(server), "half");
  await close();
});

Deno.test("a window pipe with a slow reader stops its writer", async () => {
  using scratch = new Scratch();
  const { server, client, close } = await openPair(scratch);
  server.pause();
  const piece = new Uint8Array(1 << 20);
  let count = 0;
  while (client.write(piece) && count < 100) count++;
  // A writer that ignores backpressure buffers all that it writes.
  assert.ok(count < 100);
  let isDone = false;
  client.write(piece, () => isDone = true);
  for (let at = 0; at < 20; at++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(!isDone, "nothing waits for the reader");
  server.resume();
  await once(client, "drain");
  await close();
});

Deno.test("a window does not attach to a process that does not know the key", async () => {
  using scratch = new Scratch();
  const file = join(scratch.root, "file");
  const pipe = pipeIn(scratch);
  const heard: string[] = [];
  const squatter = createServer((socket) => {
    socket.on("error", () => {}).on("data", (piece) => {
      heard.push(String(piece));
      socket.write(`${JSON.stringify({ proof: "0".repeat(64), nonce: "n", proven: true })}\n`);
    });
  });
  squatter.listen(pipe);
  await once(squatter, "listening");
  await Deno.writeTextFile(file, JSON.stringify({ pipe, key: "secret" }), { mode: 0o600 });
  assert.equal(await connectToPipe(file), undefined);
  assert.match(heard.join(""), /^\{"nonce":"[\w-]+"\}\n$/);
  squatter.close();
  await once(squatter, "close");
  // The file was left by a killed PML.
  assert.equal(await connectToPipe(file), undefined);
});

Deno.test("a running PML refuses a window that does not know the key", async () => {
  using scratch = new Scratch();
  const [file, pipe] = [join(scratch.root, "file"), pipeIn(scratch)];
  const taken: Duplex[] = [];
  const server = await listenAtPipe(file, (socket) => void taken.push(socket), pipe);
  const { key } = JSON.parse(await Deno.readTextFile(file));
  for (
    const line of [
      '{"nonce":"n"}\n{"proof":""}\n',
      "no JSON\n{}\n",
      '{"nonce":"n"}\n{"proof":"é"}\n',
    ]
  ) {
    const socket = connect(pipe).on("error", () => {});
    socket.write(line);
    assert.ok(!(await text(socket)).includes(key));
  }
  assert.deepEqual(taken, []);
  server?.close();
});
