import assert from "node:assert/strict";
import { PmlError } from "../../core/errors.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { RpcPeer, withoutClient } from "../../protocol/rpc_peer.ts";
import { StatelessRequests } from "./_stateless.ts";

/** Returns the error of a request whose server asks first, and gets this error. */
async function errorAfter(error: RpcError): Promise<unknown> {
  const peer = new RpcPeer({ send: () => {}, onRequest: () => {}, onNotification: () => {} });
  const newest = new StatelessRequests(peer, {
    answer: () => Promise.reject(error),
    capabilitiesFor: () => ({}),
    clientInfo: () => undefined,
    protocolError: (why) => new PmlError("UPSTREAM_PROTOCOL", why),
    endSignal: new AbortController().signal,
  });
  const inputRequests = { one: { method: "notes/pick", params: {} } };
  return await newest.answersTo({ inputRequests }, withoutClient()).catch((error) => error);
}

Deno.test("the error of the client for a request of a server is not the fault of the server", async () => {
  const error = await errorAfter(new RpcError(-1, "no", { a: 1 }));
  assert.ok(error instanceof PmlError);
  assert.deepEqual([error.code, error.message], ["BAD_REQUEST", "no"]);
  assert.deepEqual(error.detail?.answered, { code: -1, message: "no", data: { a: 1 } });
});

Deno.test("a server that requests a method which the client does not have broke the protocol", async () => {
  const error = await errorAfter(new RpcError(ERROR.methodNotFound, "no client declared it"));
  assert.ok(error instanceof PmlError);
  assert.equal(error.code, "UPSTREAM_PROTOCOL");
  assert.match(error.message, /"notes\/pick"/);
});
