/**
 * Tests of the lines that processes of one user exchange.
 *
 * @module
 */

import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { LineExchange } from "./private_socket.ts";

Deno.test("a program that sends lines without waiting for answers is disconnected", async () => {
  const socket = new PassThrough();
  const exchange = new LineExchange(socket);
  socket.write('{"n":1}\n{"n":2}\n{"n":3}\n');
  assert.deepEqual(await exchange.next(), { n: 1 });
  assert.equal(socket.destroyed, false);
  socket.write("{}\n".repeat(4));
  await new Promise((done) => socket.once("close", done));
  assert.equal(socket.destroyed, true);
});
