import assert from "node:assert/strict";
import fc from "fast-check";
import { parseExact } from "./exact_json.ts";
import { parseMessage, textOfResult, toOneLine } from "./json_text.ts";

const LONG = JSON.stringify("x".repeat(5_000));
const RESULT = `{"a": 1e999,  "text":${LONG}}`;

Deno.test("parseMessage() remembers the text of a large result, before or after the id", () => {
  const messages = [
    `{"jsonrpc":"2.0","id":"a","result":${RESULT}}`,
    `{"jsonrpc":"2.0","id":12,"result":${RESULT}}`,
    `{"result":${RESULT},"jsonrpc":"2.0","id":"a"}`,
  ];
  for (const text of messages) {
    const message = parseMessage(text) as { readonly result: object };
    assert.deepEqual(message, parseExact(text));
    assert.equal(textOfResult(message.result), RESULT);
  }
});

Deno.test("parseMessage() remembers no text that is small or odd", () => {
  const texts = [
    `{"jsonrpc":"2.0","id":"a","result":{"a":1}}`,
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
    assert.deepEqual(message, parseExact(text), text.slice(0, 80));
    assert.equal(textOfResult(message.result ?? {}), undefined, text.slice(0, 80));
  }
  assert.throws(() => parseMessage(`{"jsonrpc":"2.0","id":"a","result":${RESULT}`));
});

Deno.test("parseMessage() parses every text as parseExact() does", () => {
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
    assert.deepEqual(parsed(parseMessage, text), parsed(parseExact, text));
  }));
});

Deno.test("toOneLine() keeps the values and numbers of a JSON text (GX2)", () => {
  const pretty = '{\r\n"big": 12345678901234567890123,\n"text": "a\x85b\u2028c\u2029d\\n"\r}\n';
  const line = toOneLine(pretty);
  const first = '{  "big": 12345678901234567890123, "text": ';
  assert.equal(line, `${first}"a\\u0085b\\u2028c\\u2029d\\n" } `);
  assert.deepEqual(JSON.parse(line), JSON.parse(pretty));
  assert.equal(toOneLine('{"a":1}'), '{"a":1}');
});

Deno.test("the text of a large result has no line ends (GX2)", () => {
  const result = `{\n"big": 12345678901234567890123,\r\n"text":${LONG}\n}`;
  const message = parseMessage(`{"jsonrpc":"2.0","id":"a","result":${result}}`);
  const { result: parsed } = message as { readonly result: object };
  assert.equal(textOfResult(parsed), result.replace(/[\r\n]/g, " "));
});

Deno.test("no text is kept of a result that has a member twice (GX12)", () => {
  const doubled = [
    `{"content":[],"content":[${LONG}]}`,
    `{"content":[{"content":[]}],"con\\u0074ent":[${LONG}]}`,
    `{"x\\/y":1,"x/y":[${LONG}]}`,
    `{"a\\\\":1,"a\\u005c":[${LONG}]}`,
  ];
  const single = [
    `{"content":[{"content":[]}, "content"],"text":${LONG}}`,
    `{"content":["\\\\\\"","\\u00e9,{"],"text":${LONG}}`,
  ];
  const kept = (result: string) => {
    const message = parseMessage(`{"jsonrpc":"2.0","id":"a","result":${result}}`);
    return textOfResult((message as { readonly result: object }).result);
  };
  for (const result of doubled) assert.equal(kept(result), undefined, result.slice(0, 60));
  for (const result of single) assert.equal(kept(result), result, result.slice(0, 60));
});
