import assert from "node:assert/strict";
import fc from "fast-check";
import { NO_CLIENT } from "./call.ts";
import { Cancellation } from "../core/cancellation.ts";
import { PmlError } from "../core/errors.ts";
import { exactNumber } from "../core/exact_number.ts";
import { type Json, type JsonObject, objectOf, textOf } from "../core/json.ts";
import { ERROR, RpcError } from "./errors.ts";
import { messageOfServer } from "./message.ts";
import {
  CancelReason,
  type IncomingRequest,
  type PeerHost,
  type RequestOptions,
  RpcPeer,
} from "./rpc_peer.ts";

function peerOf(send: PeerHost["send"], last?: number): RpcPeer {
  return new RpcPeer({ send, onRequest() {}, onNotification() {} }, last);
}

/** Returns a peer, and the messages that it sent. */
function opened(last?: number) {
  const sent: JsonObject[] = [];
  return { sent, peer: peerOf((message) => void sent.push(message), last) };
}

function optionsOf(more: Partial<RequestOptions> = {}): RequestOptions {
  return { cancellation: new Cancellation(), client: NO_CLIENT, ...more };
}

function receive(peer: RpcPeer, message: JsonObject): boolean {
  const read = messageOfServer(message);
  assert.ok(read !== undefined);
  return peer.receive(read);
}

/** Receives the outcome of a request. */
interface Ends {
  answered?(result: Json): void;
  failed?(error: unknown): void;
}

/** Begins a request. */
function begin(peer: RpcPeer, options = optionsOf(), { answered, failed }: Ends = {}): void {
  peer.request("a", {}, options).then(answered, failed ?? (() => {}));
}

Deno.test("a request returns the unchanged result of its answer, or rejects with its error", async () => {
  const { sent, peer } = opened(1);
  const [one, other] = ["b", "c"].map((method) => peer.request(method, undefined, optionsOf()));
  assert.deepEqual(sent, [{ id: 2, method: "b" }, { id: 3, method: "c" }]);
  const error = { code: exactNumber("5.0") as unknown as Json, message: "no", data: { a: 1 } };
  assert.equal(receive(peer, { id: 3, error }), true);
  await assert.rejects(async () => await other, { code: 5, message: "no", data: { a: 1 } });
  const result = { is: exactNumber("1e400") as unknown as Json };
  assert.equal(receive(peer, { id: 2, result, error: null }), true);
  assert.equal(await one, result);
  assert.equal(receive(peer, { id: 2, result }), false, "it was answered");
});

Deno.test("RpcPeer removes a request that could not be sent", async () => {
  const peer = peerOf(() => {
    throw new Error("too deep");
  });
  await assert.rejects(peer.request("a", {}, optionsOf()), /too deep/);
  assert.equal(peer.pendingCount, 0);
});

Deno.test("RpcPeer sends no request that was cancelled before", async () => {
  const peer = peerOf(() => assert.fail("it was sent"));
  const cancellation = new Cancellation();
  cancellation.cancel(new Error("no more"));
  await assert.rejects(peer.request("a", {}, optionsOf({ cancellation })), /no more/);
  assert.equal(peer.pendingCount, 0);
});

Deno.test("a cancelled request stays pending until the other side answers it", async () => {
  const { sent, peer } = opened(6);
  const seen: unknown[] = [];
  const cancellation = new Cancellation();
  begin(peer, optionsOf({ cancellation }), { failed: (why) => seen.push(why, peer.pendingCount) });
  cancellation.cancel("no more");
  peer.cancel(7, "again");
  await Promise.resolve();
  assert.deepEqual(seen, ["no more", 1]);
  const cancelled = { method: "notifications/cancelled", params: { requestId: 7 } };
  assert.deepEqual(sent.slice(1), [cancelled], "a reason of PML itself is not sent");
  receive(peer, { id: 7, result: {} });
  assert.equal(peer.pendingCount, 0);
});

Deno.test("the other side gets a reason that is meant for it, with the request that it belongs to", () => {
  const sent: unknown[] = [];
  const peer = peerOf((message, related) => void sent.push([message, related]), 6);
  const cancellation = new Cancellation();
  begin(peer, optionsOf({ cancellation, related: '"r"' }));
  cancellation.cancel(new RpcError(ERROR.requestTimeout, "too late"));
  const params = { requestId: 7, reason: "too late" };
  assert.deepEqual(sent.at(-1), [{ method: "notifications/cancelled", params }, '"r"']);
});

Deno.test("the reason of one side reaches the other one, without hidden characters, up to a length", () => {
  const { sent, peer } = opened(6);
  const cancellation = new Cancellation();
  begin(peer, optionsOf({ cancellation }));
  const incoming: IncomingRequest = {
    idText: "1",
    isCancelled: false,
    serve: () => new Promise(() => {}),
    cancel: (cause) => cancellation.cancel(new PmlError("CANCELLED", "of PML", { cause })),
    answer() {},
    refuse() {},
  };
  void peer.serve(incoming);
  const reason = `a\u200bb${"c".repeat(10_000)}`;
  receive(peer, { method: "notifications/cancelled", params: { requestId: 1, reason } });
  const { params } = sent.at(-1) ?? {};
  const text = textOf(objectOf(params).reason);
  assert.match(text, /^a[^\u200b]*bc+$/);
  assert.ok(text.length < 2_100);
});

Deno.test("latest() returns the latest request that has the listener", () => {
  const { peer } = opened();
  const onServerRequest = () => Promise.resolve({});
  const [first, second] = [optionsOf({ client: { onServerRequest } }), optionsOf()];
  for (const one of [first, second]) begin(peer, one);
  assert.equal(peer.optionsOf("onServerRequest"), first);
  assert.equal(peer.optionsOf("onMessage"), undefined);
});

Deno.test("request ids and progress tokens are integers from 1 to 2^31 - 1 that wrap", () => {
  const { sent, peer } = opened(2 ** 31 - 2);
  const hears = () => optionsOf({ client: { onProgress() {} } });
  begin(peer, hears());
  begin(peer, hears());
  assert.deepEqual(sent.map(({ id }) => id), [2 ** 31 - 1, 1]);
  assert.deepEqual(sent.at(-1), { id: 1, method: "a", params: { _meta: { progressToken: 1 } } });
  begin(peerOf((message) => void sent.push(message)));
  const random = Number(sent.at(-1)?.id);
  assert.ok(Number.isInteger(random) && random >= 1 && random < 2 ** 31, `${random}`);
});

Deno.test("an answer whose id is returned as text is accepted", async () => {
  const { peer } = opened(4);
  const answer = peer.request("a", {}, optionsOf());
  assert.equal(receive(peer, { id: "5", result: { is: "taken" } }), true);
  assert.deepEqual(await answer, { is: "taken" });
  assert.equal(receive(peer, { id: "x5", result: {} }), false);
});

Deno.test("all requests fail when the connection ends, and those of the other side are cancelled", async () => {
  const { peer } = opened();
  const error = new Error("Connection closed");
  const before = peer.request("a", {}, optionsOf());
  const incoming = new Incoming("1");
  const served = peer.serve(incoming);
  peer.end(error);
  await assert.rejects(before, error);
  await assert.rejects(peer.request("a", {}, optionsOf()), error);
  assert.deepEqual(incoming.said, [error]);
  incoming.done.resolve({});
  await served;
  assert.deepEqual(incoming.said, [error], "a cancelled request is not answered");
});

/** A request of the other side. */
class Incoming implements IncomingRequest {
  readonly done = Promise.withResolvers<JsonObject>();
  readonly said: unknown[] = [];
  readonly idText: string;
  isCancelled = false;

  constructor(idText: string) {
    this.idText = idText;
  }

  cancel(reason: unknown): void {
    this.isCancelled = true;
    this.said.push(reason instanceof CancelReason ? reason.message : reason);
  }

  serve(): Promise<JsonObject> {
    return this.done.promise;
  }

  answer(result: JsonObject): void {
    if (result.isTooDeep === true) throw new Error("too deep");
    this.said.push(result);
  }

  refuse(error: unknown): void {
    this.said.push(`${error}`);
  }
}

Deno.test("a request of the other side is answered once, with its result or an error", async () => {
  const { peer } = opened();
  for (const [result, said] of [[{ a: 1 }, { a: 1 }], [{ isTooDeep: true }, "Error: too deep"]]) {
    const request = new Incoming("1");
    const served = peer.serve(request);
    assert.equal(peer.openCount, 1);
    request.done.resolve(result as JsonObject);
    await served;
    assert.deepEqual(request.said, [said]);
    assert.equal(peer.openCount, 0);
  }
});

Deno.test("a cancelled request of the other side does not take the place of a later one with its id", async () => {
  const { peer } = opened();
  const cancel = { method: "notifications/cancelled", params: { requestId: 1, reason: "enough" } };
  const [first, second] = [new Incoming("1"), new Incoming("1")];
  const one = peer.serve(first);
  receive(peer, cancel);
  const other = peer.serve(second);
  first.done.reject(new Error("cancelled"));
  await one;
  assert.equal(peer.openCount, 1);
  receive(peer, cancel);
  assert.deepEqual([first.said, second.said], [["enough"], ["enough"]]);
  second.done.resolve({});
  await other;
});

Deno.test("all requests of the other side with one id count, and are cancelled when the connection ends", async () => {
  const { peer } = opened();
  const error = new Error("Connection closed");
  const requests = [new Incoming("1"), new Incoming("1")];
  const served = requests.map((request) => peer.serve(request));
  assert.equal(peer.openCount, 2);
  peer.end(error);
  assert.deepEqual(requests.map(({ said }) => said), [[error], [error]]);
  for (const { done } of requests) done.resolve({});
  await Promise.all(served);
  assert.equal(peer.openCount, 0);
});

Deno.test("RpcPeer throws for no message, and resolves no request by a wrong one", () => {
  const odd = fc.oneof(fc.jsonValue(), fc.constantFrom(1, "1", 1.5, -1, null));
  const message = fc.record({
    id: odd,
    method: fc.oneof(odd, fc.constantFrom("notifications/progress", "notifications/cancelled")),
    params: fc.oneof(odd, fc.record({ requestId: odd, progressToken: odd, progress: odd })),
    result: odd,
    error: odd,
  }, { requiredKeys: [] });
  fc.assert(fc.property(fc.array(message), (messages) => {
    const { peer } = opened(2 ** 31 - 3);
    begin(peer);
    for (const one of messages) {
      const read = messageOfServer(one);
      if (read !== undefined) peer.receive(read);
    }
    assert.equal(peer.pendingCount, 1);
  }));
});
