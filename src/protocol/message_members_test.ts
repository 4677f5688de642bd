import assert from "node:assert/strict";
import {
  messageMembers,
  messageWith,
  resultMembers,
  storeResultMembers,
} from "./message_members.ts";

Deno.test("members that JSON-RPC defines do not count as other members", () => {
  const message = { jsonrpc: "2.0", id: 1, method: "a", params: {}, result: {}, error: null };
  assert.equal(messageMembers(message), undefined);
  assert.deepEqual(messageMembers({ ...message, later: 1 }), { later: 1 });
});

Deno.test("a member that a parser could confuse with one of JSON-RPC is left out, and so is null", () => {
  const names = [
    "ID",
    "Method",
    "PARAMS",
    "param\u017f",
    "Result",
    "ERROR",
    "JsonRpc",
    "__proto__",
  ];
  for (const name of names) {
    const message = JSON.parse(`{"id":1,"later":1,"gone":null,"${name}":{"x":1}}`);
    assert.deepEqual(messageMembers(message), { later: 1 }, name);
  }
});

Deno.test("the other members of a message never replace those of JSON-RPC", () => {
  const members = { method: "b", jsonrpc: "1.0", later: 1 };
  assert.deepEqual(messageWith({ method: "a", members }, true), {
    jsonrpc: "2.0",
    method: "a",
    later: 1,
  });
  assert.deepEqual(messageWith({ method: "a", members }, false), { jsonrpc: "2.0", method: "a" });
});

Deno.test("the other members of an answer are found by its result", () => {
  const result = {};
  storeResultMembers({ id: 1, result, later: 1 }, result);
  assert.deepEqual(resultMembers(result), { later: 1 });
  assert.equal(resultMembers({}), undefined);
  storeResultMembers({ id: 1, result: "text", later: 1 }, "text");
  assert.equal(resultMembers("text"), undefined);
});
