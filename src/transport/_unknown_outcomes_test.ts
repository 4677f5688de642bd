import assert from "node:assert/strict";
import { parseBriefly, removeAnswered } from "./_unknown_outcomes.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const LONG = "x".repeat(100_000);

Deno.test("briefly() returns the id of a long answer for every order of its members", () => {
  const members = {
    result: { content: [{ type: "text", text: `${LONG},"id":1}` }] },
    jsonrpc: "2.0",
    id: 'odd" \\ id',
  };
  const orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
  for (const order of orders) {
    const message = Object.fromEntries(order.map((at) => Object.entries(members)[at] ?? []));
    const { id, method } = parseBriefly(bytesOf(JSON.stringify(message)));
    assert.deepEqual([id, method], [members.id, undefined], order.join());
  }
  const error = { jsonrpc: "2.0", id: 3, error: { code: 1, message: LONG } };
  assert.equal(parseBriefly(bytesOf(JSON.stringify(error))).id, 3);
  for (const id of [undefined, 4]) {
    const asked = { params: { text: LONG }, method: "m", jsonrpc: "2.0", id };
    assert.equal(parseBriefly(bytesOf(JSON.stringify(asked))).method, "m");
  }
  assert.deepEqual(parseBriefly(bytesOf(`${LONG}{"id":1}`)), {});
});

Deno.test("removeAnswered() removes answered requests, and ignores requests and incomplete lines", () => {
  const requests: unknown[] = [1, "1", 2, 3].map((id) => ({ id, method: "ping" }));
  removeAnswered(
    requests,
    `id: 1\nevent: message\ndata: {"jsonrpc":"2.0","id":"1","error":{}}\n\n` +
      `data: {"method":"roots/list","jsonrpc":"2.0","id":2}\n\ndata: {"result":{},"id":3`,
  );
  assert.deepEqual(requests.map((one) => Object(one).id), [1, 2, 3]);
  removeAnswered(requests, `{"result":"${LONG}","jsonrpc":"2.0","id":1}`);
  assert.deepEqual(requests.map((one) => Object(one).id), [2, 3]);
});
