import assert from "node:assert/strict";
import { resultText } from "./_result.ts";

Deno.test("textOf() returns texts unchanged, and a line for each other block", () => {
  const content = [
    { type: "text", text: "a\n" },
    { type: "audio", mimeType: "audio/wav", data: "AAEC" },
    { type: "resource_link", name: "n\x1b", uri: "file:///x" },
    { type: "resource", resource: { uri: "file:///y", text: "inside" } },
    { type: "resource", resource: { uri: "file:///z", mimeType: "a/b", blob: "AA==" } },
    { type: "hologram" },
  ];
  assert.deepEqual(resultText({ content }).split("\n"), [
    "a",
    "",
    '{"type":"audio","mimeType":"audio/wav","data":"AAEC"} (--json shows all)',
    '{"type":"resource_link","name":"n\\u001b","uri":"file:///x"} (--json shows all)',
    "inside",
    '{"type":"resource","resource":{"uri":"file:///z","mimeType":"a/b","blob":"AA=="}} (--json shows all)',
    '{"type":"hologram"} (--json shows all)',
  ]);
});

Deno.test("textOf() shows structured content where there is nothing else", () => {
  assert.equal(resultText({ content: [], structuredContent: { a: 1 } }), '{\n  "a": 1\n}');
  assert.equal(resultText({ content: [] }), "");
});
