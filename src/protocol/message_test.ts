import assert from "node:assert/strict";
import fc from "fast-check";
import { messageOfServer, readMessage, readText, refusalMessage } from "./message.ts";

function read(text: string | Uint8Array): ReturnType<typeof readMessage> {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  return readMessage({ kind: "line", bytes });
}

Deno.test("readMessage() refuses an invalid JSON-RPC message with the right code", () => {
  const table: readonly (readonly [string | Uint8Array, number])[] = [
    ["nonsense", -32700],
    ["{", -32700],
    ["GET / HTTP/1.1", -32700],
    [new Uint8Array([0x7b, 0xff, 0x7d]), -32700],
    ["[]", -32600],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
    ["null", -32600],
    ["1", -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1e400,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":2}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600],
    ['{"jsonrpc":"2.0"}', -32600],
  ];
  for (const [text, code] of table) {
    const got = read(text);
    assert.ok(got?.kind === "refusal" && got.code === code, String(text));
  }
});

Deno.test("readMessage() refuses a request with its id, and other messages without an id (GX20)", () => {
  const table: readonly (readonly [string, number | string | undefined])[] = [
    ['"jsonrpc":"2.0","id":1,"method":"ping","params":null', 1],
    ['"jsonrpc":"2.0","id":"a","method":"ping","params":{"_meta":null}', "a"],
    ['"jsonrpc":"2.0","id":2,"method":null', 2],
    ['"jsonrpc":"1.0","id":3,"method":"ping"', 3],
    ['"jsonrpc":"2.0","id":1.5,"method":"ping"', undefined],
    ['"jsonrpc":"1.0","id":3,"result":{}', undefined],
  ];
  for (const [members, id] of table) {
    const got = read(`{${members}}`);
    assert.ok(got?.kind === "refusal" && got.id === id, members);
  }
});

Deno.test("readMessage() ignores empty lines, a byte order mark and a carriage return", () => {
  for (const text of ["", "  ", "\r"]) assert.equal(read(text), undefined);
  assert.equal(read('\uFEFF{"jsonrpc":"2.0","id":1,"method":"ping"}\r')?.kind, "request");
});

Deno.test("readMessage() distinguishes ids that are numbers and strings", () => {
  const one = read('{"jsonrpc":"2.0","id":1,"method":"ping"}');
  const text = read('{"jsonrpc":"2.0","id":"1","method":"ping"}');
  assert.ok(one?.kind === "request" && text?.kind === "request" && one.id !== text.id);
});

Deno.test("readMessage() keeps the text of ids of any size", () => {
  for (const id of ["9007199254740993", "1.0", "1e2", "9".repeat(400), '"9007199254740993"']) {
    const request = read(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`);
    assert.ok(request?.kind === "request" && request.id === id, id);
    const refused = read(`{"jsonrpc":"2.0","id":${id},"method":"ping","params":null}`);
    assert.ok(refused?.kind === "refusal");
    assert.ok(JSON.stringify(refusalMessage(refused)).includes(`"id":${id},`), id);
  }
});

Deno.test("readMessage() never throws, for any bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void read(bytes)));
  fc.assert(fc.property(fc.json(), (text) => void read(text)));
});

Deno.test("readText() accepts invalid UTF-8 from servers only, and no text beyond a limit", () => {
  const odd = new Uint8Array([0x22, 0xff, 0x22]);
  assert.deepEqual(readText(odd, "server"), { kind: "value", value: "\uFFFD" });
  assert.deepEqual(readText(odd, "client"), { kind: "invalid" });
  const deep = new TextEncoder().encode(`${"[".repeat(20_000)}${"]".repeat(20_000)}`);
  for (const sender of ["client", "server"] as const) {
    assert.equal(readText(deep, sender).kind, "excess");
    assert.equal(readText(new TextEncoder().encode("a log line"), sender).kind, "invalid");
  }
});

Deno.test("messageOfServer() accepts messages with invalid members, except requests without a valid id", () => {
  const table: readonly (readonly [unknown, string | undefined])[] = [
    [{ id: 1, method: "ping", params: null }, "request"],
    [{ id: 1.5, method: "ping" }, "request"],
    [{ id: null, method: "ping" }, undefined],
    [{ id: {}, method: "ping" }, undefined],
    [{ id: "x".repeat(1_001), method: "ping" }, undefined],
    [{ jsonrpc: "1.0", method: "a" }, "notification"],
    [{ method: "notifications/cancelled", params: [] }, "cancel"],
    [{ id: 1, method: null, result: {} }, "response"],
    [{}, "response"],
    [[], undefined],
    ["a", undefined],
  ];
  for (const [message, kind] of table) {
    assert.equal(messageOfServer(message)?.kind, kind, JSON.stringify(message));
  }
});
