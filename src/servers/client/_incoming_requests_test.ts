import assert from "node:assert/strict";
import type { JsonObject } from "../../core/json.ts";
import { RpcPeer } from "../../protocol/rpc_peer.ts";
import { IncomingRequests } from "./_incoming_requests.ts";
import type { PeerRequest } from "./_server_requests.ts";

Deno.test("progress of a request reaches the server until it is answered or cancelled", async () => {
  for (const isCancelled of [false, true]) {
    const sent: JsonObject[] = [];
    const request = Promise.withResolvers<PeerRequest>();
    const answer = Promise.withResolvers<JsonObject>();
    const peer = new RpcPeer({ send: () => {}, onRequest: () => {}, onNotification: () => {} });
    const requests = new IncomingRequests(peer, {
      send: (message) => void sent.push(message),
      answer: (one) => (request.resolve(one), answer.promise),
    });
    const params = { _meta: { progressToken: "t" } };
    const message = { jsonrpc: "2.0", id: 1, method: "elicitation/create", params };
    requests.take({ kind: "request", id: "1", message }, undefined);
    const { onProgress } = await request.promise;
    onProgress?.({ progress: 1 });
    if (isCancelled) peer.end(new Error("the connection has ended"));
    answer.resolve({});
    await requests.waitForAnswers();
    onProgress?.({ progress: 2 });
    assert.deepEqual(sent, [
      { method: "notifications/progress", params: { progress: 1, progressToken: "t" } },
      ...isCancelled ? [] : [{ id: 1, result: {} }],
    ]);
  }
});

Deno.test("a server cannot have more requests open than the limit, also with one id for all", () => {
  const refused: JsonObject[] = [];
  let served = 0;
  const peer = new RpcPeer({ send: () => {}, onRequest: () => {}, onNotification: () => {} });
  const requests = new IncomingRequests(peer, {
    send: (message) => void refused.push(message),
    answer: () => (served++, new Promise(() => {})),
  });
  const message = { jsonrpc: "2.0", id: 1, method: "elicitation/create" };
  for (let count = 0; count < 100; count++) {
    requests.take({ kind: "request", id: "1", message }, undefined);
  }
  assert.deepEqual([served, refused.length], [64, 36]);
});
