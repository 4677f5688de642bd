import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { ConnectionState, isRepeatable } from "./connection_state.ts";

const HELLO: JsonObject = { jsonrpc: "2.0", id: 1, method: "initialize", params: { a: 1 } };

function request(id: number, method: string, params: JsonObject = {}): JsonObject {
  return { jsonrpc: "2.0", id, method, params };
}

/** Returns the messages that set a state again. */
function restored(all: readonly JsonObject[], waiting: readonly JsonObject[] = []): JsonObject[] {
  const state = new ConnectionState();
  for (const message of all) state.record(message);
  let count = 0;
  return [...state.restore(waiting, () => `r${count++}`)];
}

Deno.test("the last value of each part of a connection's state is set again, the handshake first", () => {
  const [level, a, b] = [
    request(3, "logging/setLevel", { level: "error" }),
    request(4, "resources/subscribe", { uri: "a:1" }),
    request(5, "resources/subscribe", { uri: "b:1" }),
  ];
  const others = [
    request(2, "logging/setLevel", { level: "info" }),
    request(6, "tools/list"),
    request(7, "constructor"),
    request(8, "resources/unsubscribe", { uri: "a:1" }),
  ];
  assert.deepEqual(restored([HELLO, ...others.slice(0, 1), level, a, b, ...others.slice(1)]), [
    { ...HELLO, id: "r0" },
    { jsonrpc: "2.0", method: "notifications/initialized" },
    { ...level, id: "r1" },
    { ...b, id: "r2" },
  ]);
});

Deno.test("a request that has no answer yet is not sent twice", () => {
  const level = request(2, "logging/setLevel", { level: "error" });
  assert.deepEqual(restored([HELLO, level], [HELLO, level]), []);
  assert.deepEqual(restored([HELLO, level], [level]).length, 2);
});

Deno.test("a request is sent again only if it changes nothing", () => {
  for (const method of ["tools/list", "resources/read", "prompts/get", "initialize"]) {
    assert.equal(isRepeatable(request(1, method)), true, method);
  }
  assert.equal(isRepeatable(request(1, "tools/call", { name: "search" })), true);
  for (const name of ["call", "execute_code", "fs__write"]) {
    assert.equal(isRepeatable(request(1, "tools/call", { name })), false, name);
  }
  assert.equal(isRepeatable(request(1, "skills/run")), false);
});
