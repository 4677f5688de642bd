import assert from "node:assert/strict";
import { initializeResult } from "./initialize.ts";

const GREETING = { serverInfo: { name: "pml" } };

function initialize(params: unknown) {
  return { jsonrpc: "2.0", id: 1, method: "initialize", params } as never;
}

const PARAMS = {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "t", version: "1" },
};

Deno.test("greet() agrees to a known revision and offers the newest for another", () => {
  assert.deepEqual(initializeResult(initialize(PARAMS), GREETING), {
    protocolVersion: "2025-06-18",
    ...GREETING,
  });
  const unknown = initializeResult(
    initialize({ ...PARAMS, protocolVersion: "1999-01-01" }),
    GREETING,
  );
  assert.deepEqual(unknown, { protocolVersion: "2025-11-25", ...GREETING });
});

Deno.test("greet() returns undefined for an invalid initialize request", () => {
  const others = [
    undefined,
    { ...PARAMS, capabilities: 1 },
    { ...PARAMS, clientInfo: { name: "t" } },
    { ...PARAMS, protocolVersion: 1 },
  ];
  for (const params of others) {
    assert.equal(initializeResult(initialize(params), GREETING), undefined);
  }
  const ping = { jsonrpc: "2.0", id: 1, method: "ping", params: PARAMS } as never;
  assert.equal(initializeResult(ping, GREETING), undefined);
});
