import assert from "node:assert/strict";
import { parseExact } from "../core/exact_json.ts";
import { withExactIds, withTextIds } from "./exact_ids.ts";

const BIG = "9007199254740993";

Deno.test("withTextIds() replaces the numbers beyond 2^53 that name requests, and withExactIds() restores them", () => {
  const texts = [
    `{"jsonrpc":"2.0","id":${BIG},"method":"ping"}`,
    `{"jsonrpc":"2.0","id":-${BIG},"method":"m","params":{"_meta":{"progressToken":${BIG},"a":1}}}`,
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1.0}}`,
    `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":${BIG},"method":"ping"}]`,
  ];
  for (const text of texts) {
    const message = withTextIds(parseExact(text));
    assert.deepEqual(JSON.parse(JSON.stringify(message)), message, text);
    assert.equal(withExactIds(JSON.stringify(message)), text);
  }
});

Deno.test("withTextIds() changes no other numbers", () => {
  const text = `{"id":1,"method":"m","params":{"requestId":${BIG},"arguments":{"id":${BIG}}}}`;
  const message = parseExact(text);
  assert.equal(withTextIds(message), message);
  assert.equal(withExactIds('{"id":"pml-1"}'), '{"id":"pml-1"}');
});
