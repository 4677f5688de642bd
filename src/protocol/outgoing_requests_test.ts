import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { OutgoingRequests } from "./outgoing_requests.ts";

const MS = 60_000;

/** The requests of a connection, and what was sent on it. */
function opened() {
  const sent: JsonObject[] = [];
  return { sent, requests: new OutgoingRequests((message) => void sent.push(message)) };
}

Deno.test("a request returns the result of its answer, or rejects with its error", async () => {
  const { sent, requests } = opened();
  const [one, other] = [1, 2].map((at) => requests.request("x/y", { params: { at }, ms: MS }));
  const [first, second] = sent;
  assert.ok(first && second);
  assert.deepEqual([first.method, first.params], ["x/y", { at: 1 }]);
  const error = { code: 5, message: "no", data: { a: 1 } };
  assert.equal(requests.takes({ jsonrpc: "2.0", id: second.id ?? null, error }), true);
  await assert.rejects(async () => await other, error);
  assert.equal(requests.takes({ jsonrpc: "2.0", id: first.id ?? null, result: { b: 2 } }), true);
  assert.deepEqual(await one, { b: 2 });
});

Deno.test("messages that answer no request are not taken", () => {
  const { requests } = opened();
  assert.equal(requests.takes({ jsonrpc: "2.0", id: "pml-1", result: {} }), false);
  assert.equal(requests.takes({ jsonrpc: "2.0", method: "notifications/initialized" }), false);
});

Deno.test("a request that is aborted, and one that takes too long, is cancelled at the client", async () => {
  const { sent, requests } = opened();
  const abort = new AbortController();
  const aborted = requests.request("x/y", { ms: MS, signal: abort.signal });
  abort.abort(new Error("enough"));
  await assert.rejects(aborted, /enough/);
  await assert.rejects(requests.request("x/y", { ms: 1 }), { code: -32001 });
  const cancelled = sent.filter(({ method }) => method === "notifications/cancelled")
    .map(({ params }) => (params as JsonObject).requestId);
  assert.deepEqual(cancelled, sent.filter((one) => "id" in one).map(({ id }) => id));
});

Deno.test("all requests reject when the connection is closed", async () => {
  const { requests } = opened();
  const open = requests.request("x/y", { ms: MS });
  requests[Symbol.dispose]();
  await assert.rejects(open, /Connection closed/);
});
