import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { Peer, type Pending } from "./_peer.ts";

function peerOf(send: (message: JsonObject) => void, last?: number): Peer {
  const options = {
    send,
    withoutSecrets: <T>(message: T) => message,
    onRequest: () => Promise.reject(new Error("nothing is asked")),
    onNotification: () => {},
  };
  return new Peer(options, last);
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

Deno.test("request ids and progress tokens are integers from 1 to 2^31 - 1 that wrap", () => {
  const sent: JsonObject[] = [];
  const peer = peerOf((message) => void sent.push(message), 2 ** 31 - 2);
  const begin = () => peer.begin("a", {}, pendingOf({ hears: true }));
  assert.deepEqual([begin(), begin()], [2 ** 31 - 1, 1]);
  assert.deepEqual(sent.at(-1), { id: 1, method: "a", params: { _meta: { progressToken: 1 } } });
  const random = peerOf(() => {}).begin("a", {}, pendingOf({}));
  assert.ok(Number.isInteger(random) && random >= 1 && random < 2 ** 31, `${random}`);
});

Deno.test("an answer whose id a server returned as text is taken", () => {
  const peer = peerOf(() => {}, 4);
  const results: unknown[] = [];
  const id = peer.begin("a", {}, pendingOf({ answered: (result) => results.push(result) }));
  assert.equal(peer.receive({ jsonrpc: "2.0", id: String(id), result: { is: "taken" } }), true);
  assert.deepEqual(results, [{ is: "taken" }]);
  assert.equal(peer.receive({ jsonrpc: "2.0", id: "x5", result: {} }), false);
});
