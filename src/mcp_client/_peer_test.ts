import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import { Peer, type Pending } from "./_peer.ts";

function peerOf(send: (message: JsonObject) => void, last?: number): Peer {
  const options = {
    name: "s",
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

/** A peer whose server sends nothing, with short times. */
function silentPeer() {
  const sent: unknown[] = [];
  const hung: number[] = [];
  const peer = new Peer({
    name: "s",
    send: ({ method }) => void sent.push(method),
    withoutSecrets: (message) => message,
    onRequest: () => Promise.reject(new Error("nothing is asked")),
    onNotification: () => {},
    onHung: (ms) => {
      hung.push(ms);
      peer.end(new Error("hung"));
    },
    times: { quietMs: 40, pongMs: 10 },
  });
  return { peer, sent, hung };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

Deno.test("requests report once that their server does not answer, also those that begin later", async () => {
  const { peer } = silentPeer();
  const { signal } = new AbortController();
  const reports: unknown[] = [];
  const listening = (of: string) =>
    pendingOf({
      options: () => ({
        signal,
        onProgress: ({ own, message }) => void reports.push([of, own, message]),
      }),
    });
  peer.begin("tools/call", {}, listening("first"));
  await until(() => reports.length > 0);
  peer.begin("tools/call", {}, listening("second"));
  const said = "s has not answered for 10 s";
  assert.deepEqual(reports, [["first", "unresponsive", said], ["second", "unresponsive", said]]);
  peer.receive({ jsonrpc: "2.0", method: "notifications/message", params: {} });
  assert.deepEqual(reports.slice(2).map((report) => (report as string[])[1]), [
    ...["responsive", "responsive"],
  ]);
  peer.end(new Error("over"));
});

Deno.test("a server that sent nothing until the deadline of a request is hung, with all its requests", async () => {
  const { peer, sent, hung } = silentPeer();
  const failed: unknown[] = [];
  const waiting = () => pendingOf({ failed: (why) => failed.push((why as Error).message) });
  const id = peer.begin("tools/call", {}, waiting());
  peer.begin("tools/call", {}, waiting());
  await until(() => sent.includes("ping"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  peer.cancel(id, new PmlError("TIMED_OUT", "late"));
  assert.deepEqual(failed, ["late", "hung"]);
  assert.ok((hung[0] ?? 0) >= 40);
});

Deno.test("a deadline ends no server that sent something meanwhile, and no other end does", async () => {
  const { peer, sent, hung } = silentPeer();
  const late = new PmlError("TIMED_OUT", "late");
  const begin = () => peer.begin("tools/call", {}, pendingOf({}));
  const [first, second] = [begin(), begin()];
  peer.receive({ jsonrpc: "2.0", method: "notifications/message", params: {} });
  await until(() => sent.includes("ping"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  peer.cancel(first, late);
  const third = begin();
  peer.cancel(third, new PmlError("CANCELLED", "no more"));
  assert.deepEqual(hung, []);
  assert.equal(peer.hung, true, "the next use starts another");
  peer.cancel(second, late);
  peer.end(new Error("over"));
});
