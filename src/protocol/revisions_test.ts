import assert from "node:assert/strict";
import { SUPPORTED_PROTOCOL_VERSIONS, type Transport } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { HANDSHAKE_REVISIONS, isOfOtherKind, STATELESS_REVISIONS } from "./revisions.ts";

Deno.test("the table has the revisions of the SDK that begin with initialize, in its order", () => {
  const older = SUPPORTED_PROTOCOL_VERSIONS.filter((one) => one < "2026");
  assert.deepEqual(HANDSHAKE_REVISIONS, older);
});

Deno.test("the table has the other revisions of the SDK, as its error for an unknown one lists them", async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const transport: Transport = {
    start: () => Promise.resolve(),
    close: () => Promise.resolve(),
    send: (message) => Promise.resolve(resolve(message)),
  };
  const none = () => Promise.reject(new Error("no server is made for an unknown revision"));
  await using _ = { [Symbol.asyncDispose]: serveStdio(none, { transport }).close };
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "9999-01-01",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  transport.onmessage?.({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } });
  const { error } = await promise as { readonly error: { readonly data: unknown } };
  assert.deepEqual(error.data, { supported: STATELESS_REVISIONS, requested: "9999-01-01" });
});

Deno.test("a method of one kind does not exist in the other, unless no revision defines it", () => {
  assert.deepEqual(
    ["ping", "server/discover", "tools/list", "skills/list"].map((method) => [
      isOfOtherKind(method, "handshake"),
      isOfOtherKind(method, "stateless"),
    ]),
    [[false, true], [true, false], [false, false], [false, false]],
  );
});
