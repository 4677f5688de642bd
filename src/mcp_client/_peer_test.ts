import assert from "node:assert/strict";
import { NO_CLIENT } from "../core/call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import type { Json, JsonObject } from "../core/json.ts";
import { Peer, type RequestOptions } from "./_peer.ts";

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

function optionsOf(more: Partial<RequestOptions> = {}): RequestOptions {
  return { cancellation: new Cancellation(), client: NO_CLIENT, ...more };
}

/** The ends of a request: what it is told. */
interface Ends {
  answered?(result: Json): void;
  failed?(error: unknown): void;
}

/** Begins a request. */
function begin(peer: Peer, options = optionsOf(), { answered, failed }: Ends = {}): void {
  peer.request("a", {}, options).then(answered, failed ?? (() => {}));
}

Deno.test("Peer forgets a request that could not be sent", async () => {
  const peer = peerOf(() => {
    throw new Error("too deep");
  });
  await assert.rejects(peer.request("a", {}, optionsOf()), /too deep/);
  assert.equal(peer.pending, 0);
});

Deno.test("Peer sends no request that was cancelled before", async () => {
  const peer = peerOf(() => assert.fail("it was sent"));
  const cancellation = new Cancellation();
  cancellation.cancel(new Error("no more"));
  await assert.rejects(peer.request("a", {}, optionsOf({ cancellation })), /no more/);
  assert.equal(peer.pending, 0);
});

Deno.test("a cancelled request stays pending until the server answers it", async () => {
  const sent: unknown[] = [];
  const peer = peerOf(({ method }) => sent.push(method), 6);
  const seen: unknown[] = [];
  const cancellation = new Cancellation();
  begin(peer, optionsOf({ cancellation }), { failed: (why) => seen.push(why, peer.pending) });
  cancellation.cancel("no more");
  peer.cancel(7, "again");
  await Promise.resolve();
  assert.deepEqual(seen, ["no more", 1]);
  assert.deepEqual(sent, ["a", "notifications/cancelled", "ping"]);
  peer.receive({ jsonrpc: "2.0", id: 7, result: {} });
  assert.equal(peer.pending, 0);
});

Deno.test("Peer asks by the latest request that can be asked by", () => {
  const peer = peerOf(() => {});
  const onAsk = () => Promise.resolve({});
  const [first, second] = [optionsOf({ client: { onAsk } }), optionsOf()];
  for (const one of [first, second]) begin(peer, one);
  assert.equal(peer.latest("onAsk"), first);
  assert.equal(peer.latest("onMessage"), undefined);
});

Deno.test("request ids and progress tokens are integers from 1 to 2^31 - 1 that wrap", () => {
  const sent: JsonObject[] = [];
  const peer = peerOf((message) => void sent.push(message), 2 ** 31 - 2);
  const hears = () => optionsOf({ client: { onProgress() {} } });
  begin(peer, hears());
  begin(peer, hears());
  assert.deepEqual(sent.map(({ id }) => id), [2 ** 31 - 1, 1]);
  assert.deepEqual(sent.at(-1), { id: 1, method: "a", params: { _meta: { progressToken: 1 } } });
  begin(peerOf((message) => void sent.push(message)));
  const random = Number(sent.at(-1)?.id);
  assert.ok(Number.isInteger(random) && random >= 1 && random < 2 ** 31, `${random}`);
});

Deno.test("an answer whose id a server returned as text is taken", async () => {
  const peer = peerOf(() => {}, 4);
  const answer = peer.request("a", {}, optionsOf());
  assert.equal(peer.receive({ jsonrpc: "2.0", id: "5", result: { is: "taken" } }), true);
  assert.deepEqual(await answer, { is: "taken" });
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
  }, 6);
  return { peer, sent, hung };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}

Deno.test("requests report once that their server does not answer, also those that begin later", async () => {
  const { peer } = silentPeer();
  const reports: unknown[] = [];
  const listening = (of: string) =>
    optionsOf({
      client: { onProgress: ({ own, message }) => void reports.push([of, own, message]) },
    });
  begin(peer, listening("first"));
  await until(() => reports.length > 0);
  begin(peer, listening("second"));
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
  const waiting: Ends = { failed: (why) => failed.push((why as Error).message) };
  begin(peer, optionsOf(), waiting);
  begin(peer, optionsOf(), waiting);
  await until(() => sent.includes("ping"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  peer.cancel(7, new PmlError("TIMED_OUT", "late"));
  await Promise.resolve();
  assert.deepEqual(failed, ["late", "hung"]);
  assert.ok((hung[0] ?? 0) >= 40);
});

Deno.test("a deadline ends no server that sent something meanwhile, and no other end does", async () => {
  const { peer, sent, hung } = silentPeer();
  const late = new PmlError("TIMED_OUT", "late");
  begin(peer);
  begin(peer);
  peer.receive({ jsonrpc: "2.0", method: "notifications/message", params: {} });
  await until(() => sent.includes("ping"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  peer.cancel(7, late);
  const cancellation = new Cancellation();
  begin(peer, optionsOf({ cancellation }));
  cancellation.cancel(new PmlError("CANCELLED", "no more"));
  assert.deepEqual(hung, []);
  assert.equal(peer.hung, true, "the next use starts another");
  peer.cancel(8, late);
  peer.end(new Error("over"));
});
