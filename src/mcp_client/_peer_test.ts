import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { Peer, type Pending } from "./_peer.ts";

function peerOf(send: (message: JsonObject) => void): Peer {
  return new Peer({
    send,
    withoutSecrets: (message) => message,
    onRequest: () => Promise.reject(new Error("nothing is asked")),
    onNotification: () => {},
  });
}

function pendingOf(more: Partial<Pending>): Pending {
  const { signal } = new AbortController();
  return { answered() {}, failed() {}, options: () => ({ signal }), hears: false, ...more };
}

Deno.test("Peer forgets a request that could not be sent", () => {
  const peer = peerOf(() => {
    throw new Error("too deep");
  });
  assert.throws(() => peer.begin("a", {}, pendingOf({})), /too deep/);
  assert.equal(peer.pending, 0);
});

Deno.test("Peer tells who waited for a cancelled request that the server may still work on it", () => {
  const sent: unknown[] = [];
  const peer = peerOf(({ method }) => sent.push(method));
  const seen: unknown[] = [];
  const id = peer.begin("a", {}, pendingOf({ failed: (why) => seen.push(why, peer.pending) }));
  peer.cancel(id, "no more");
  peer.cancel(id, "again");
  assert.deepEqual(seen, ["no more", 1]);
  assert.deepEqual(sent, ["a", "notifications/cancelled", "ping"]);
  peer.receive({ jsonrpc: "2.0", id, result: {} });
  assert.equal(peer.pending, 0);
});

Deno.test("Peer asks by the latest request that can be asked by", () => {
  const peer = peerOf(() => {});
  const { signal } = new AbortController();
  const onAsk = () => Promise.resolve({});
  const [first, second] = [{ signal, onAsk }, { signal }];
  for (const one of [first, second]) peer.begin("a", {}, pendingOf({ options: () => one }));
  assert.equal(peer.latest("onAsk"), first);
  assert.equal(peer.latest("onMessage"), undefined);
});
