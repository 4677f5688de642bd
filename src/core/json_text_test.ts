import assert from "node:assert/strict";
import fc from "fast-check";
import { parseMessage, textOfResult } from "./json_text.ts";

const LONG = JSON.stringify("x".repeat(5_000));
const RESULT = `{"a": 1e999,  "text":${LONG}}`;

Deno.test("parseMessage() remembers the text of a large result, wherever the id stands", () => {
  const messages = [
    `{"jsonrpc":"2.0","id":"a","result":${RESULT}}`,
    `{"jsonrpc":"2.0","id":12,"result":${RESULT}}`,
    `{"result":${RESULT},"jsonrpc":"2.0","id":"a"}`,
  ];
  for (const text of messages) {
    const message = parseMessage(text) as { readonly result: object };
    assert.deepEqual(message, JSON.parse(text));
    assert.equal(textOfResult(message.result), RESULT);
  }
});

Deno.test("parseMessage() remembers no text that is small, odd, or has a carriage return", () => {
  const texts = [
    `{"jsonrpc":"2.0","id":"a","result":{"a":1}}`,
    `{"jsonrpc":"2.0","id":"a","result":\r${RESULT}}`,
    `{"jsonrpc":"2.0","id":"a","result":{\r"text":${LONG}}}`,
    `{"jsonrpc":"2.0","id":"a","result":${RESULT},"result":{}}`,
    `{"jsonrpc":"2.0","id":"a","result":${RESULT},"id":"b"}`,
    `{"id":"a","jsonrpc":"2.0","result":${RESULT}}`,
    `{"jsonrpc":"2.0","id":"a\\"","result":${RESULT}}`,
    `{"jsonrpc":"2.0","id":"a","result":[${LONG}]}`,
    `{"jsonrpc":"2.0","id":"a","error":${RESULT}}`,
    `{"result":${RESULT}, "jsonrpc":"2.0","id":"a"}`,
  ];
  for (const text of texts) {
    const message = parseMessage(text) as { readonly result?: object };
    assert.deepEqual(message, JSON.parse(text), text.slice(0, 80));
    assert.equal(textOfResult(message.result ?? {}), undefined, text.slice(0, 80));
  }
  assert.throws(() => parseMessage(`{"jsonrpc":"2.0","id":"a","result":${RESULT}`));
});

Deno.test("parseMessage() parses every text as JSON.parse does", () => {
  const piece = fc.constantFrom(
    ...['{"jsonrpc":"2.0","id":"a","result":', '{"result":', RESULT, LONG, "{", "}", "[]", ","],
    ...[',"jsonrpc":"2.0","id":"a"}', ',"id":"b"', '"x":', " ", '"', "null", '{"result":1}'],
  );
  const parsed = (parse: (text: string) => unknown, text: string) => {
    try {
      return { value: parse(text) };
    } catch {
      return undefined;
    }
  };
  fc.assert(fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
    const text = pieces.join("");
    assert.deepEqual(parsed(parseMessage, text), parsed(JSON.parse, text));
  }));
});
