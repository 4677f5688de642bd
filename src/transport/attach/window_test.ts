import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import type { ClientPipes } from "../stdio/_pipes.ts";
import { passOn } from "./window.ts";

const UTF_8 = new TextEncoder();

/** Returns a window whose connection can break, and the client of the window. */
function makeWindow() {
  const socket = new Duplex({ read() {}, write: (_piece, _encoding, done) => done() });
  const ended = new AbortController();
  const over = Promise.withResolvers<void>();
  let take = (_piece: Uint8Array) => {};
  const pipes: ClientPipes = {
    open: (taker) => {
      take = taker;
      return { whenEnded: over.promise, pause() {}, resume() {}, close: () => Promise.resolve() };
    },
    output: { write: () => Promise.resolve() },
    discardOutput() {},
  };
  const alone = passOn({ socket, inputBytes: 1_000_000 }, ended.signal, pipes);
  return {
    alone,
    breakOff: () => void socket.destroy(),
    say: (message: object) => take(UTF_8.encode(`${JSON.stringify(message)}\n`)),
  };
}

Deno.test("a window passes a request that follows the end of the running PML on once", async () => {
  const { alone, breakOff, say } = makeWindow();
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: {} };
  say({ jsonrpc: "2.0", id: 0, method: "ping" });
  breakOff();
  const pipes = await alone;
  say({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  let text = "";
  pipes?.open((piece) => text += new TextDecoder().decode(piece));
  const methods = text.trim().split("\n").map((line) => JSON.parse(line).method);
  assert.deepEqual(methods, ["ping", "initialize"]);
});
