import assert from "node:assert/strict";
import type { ToolResult } from "./call.ts";
import { parseMessage, textOfResult } from "../core/json_text.ts";
import { safeItem, safeText, safeTexts, withTagRemark } from "./safe_text.ts";

Deno.test("safeText() escapes invisible characters and those that reorder others (GX18)", () => {
  const table: Readonly<Record<string, string>> = {
    "a\u202eb\u2066": "a\\u{202e}b\\u{2066}",
    "\u{e0041}\u{e007f}": "\\u{e0041}\\u{e007f}",
    "a\u200b\u200d\u2060\ufeff\u00adb": "a\\u{200b}\\u{200d}\\u{2060}\\u{feff}\\u{ad}b",
    "\x1b[2K\x07\r": "\\u{1b}[2K\\u{7}\\u{d}",
    "\u2028\u3164\ud800": "\\u{2028}\\u{3164}\\u{d800}",
    "😀\u{e0100}\ufe01": "😀\\u{e0100}\\u{fe01}",
    "🏴\u{e0041}": "🏴\\u{e0041}",
    "م\u200c\u200cx\u200c": "م\u200c\\u{200c}x\\u{200c}",
  };
  for (const [text, safe] of Object.entries(table)) assert.equal(safeText(text), safe);
});

Deno.test("safeText() keeps line ends, emoji and the joiners of scripts (GX18)", () => {
  const texts = [
    "a\n\tb\r\nc",
    "👨‍👩‍👧 ❤️‍🔥 ❤‍🔥 1️⃣ 🇩🇪 👍🏽 ☺︎",
    "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "می\u200cخواهم ه\u200d",
    "क्\u200dष ශ්\u200dරී",
    "葛\u{e0100}",
    "naïve Ünïcode 漢字",
  ];
  for (const text of texts) assert.equal(safeText(text), text);
});

Deno.test("safeItem() escapes titles and descriptions, and no name or value (GX18)", () => {
  const [raw, safe] = ["a\u200bb", "a\\u{200b}b"];
  const toolOf = (text: string) => ({
    name: raw,
    title: text,
    description: text,
    annotations: { title: text },
    inputSchema: {
      title: text,
      properties: {
        [raw]: { description: text, enum: [raw], const: raw, default: raw, pattern: raw },
        title: { type: "string", title: text, anyOf: [{ const: raw, title: text }] },
        description: { items: { $comment: text, default: { title: raw } } },
      },
      $defs: { [raw]: { markdownDescription: text } },
      required: [raw],
    },
    outputSchema: { enumNames: [text] },
    _meta: { raw },
  });
  assert.deepEqual(safeItem(toolOf(raw)), toolOf(safe));
  const tool = toolOf("plain");
  assert.equal(safeItem(tool), tool);
  const prompt = { name: raw, arguments: [{ name: raw, description: raw }] };
  assert.deepEqual(safeItem(prompt), {
    name: raw,
    arguments: [{ name: raw, description: safe }],
  });
});

Deno.test("safeItem() returns a tool that is nested too deep for a schema (GX18)", () => {
  let deep: unknown = {};
  for (let depth = 0; depth < 10_000; depth++) deep = depth % 2 === 0 ? [deep] : { not: deep };
  const tool = {
    name: "t",
    description: "\u200b",
    annotations: { deep },
    inputSchema: { not: deep },
  };
  assert.equal(safeItem(tool).description, "\\u{200b}");
});

Deno.test("safeTexts() escapes the texts of JSON and no names (GX12)", () => {
  assert.deepEqual(safeTexts({ "\u200b": ["\u202e", { a: "\x1b" }, 1, null] }), {
    "\u200b": ["\\u{202e}", { a: "\\u{1b}" }, 1, null],
  });
});

Deno.test("withTagRemark() counts the tag characters of a result and keeps them (GX18)", () => {
  const block = { type: "text", text: "a\u{e0041}\u{e0042}" };
  const flag = "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
  const { content } = withTagRemark({ content: [block, { type: "text", text: flag }] });
  assert.deepEqual(content[0], block);
  assert.match(String(content[2]?.text), /^PML notes: this result has 2 invisible tag characters/);
  const plain = { content: [{ type: "text", text: flag }], structuredContent: { a: null } };
  assert.equal(withTagRemark(plain), plain);
  for (const tag of ["\u{e0041}", "\\udb40\\udc41", "\\uDB40\\uDC41", "\\udB40\\udC41"]) {
    const text = `{"content":[{"type":"text","text":"${"x".repeat(5_000)}${tag}"}]}`;
    const message = parseMessage(`{"jsonrpc":"2.0","id":"a","result":${text}}`);
    const { result } = message as { readonly result: ToolResult };
    assert.equal(textOfResult(result), text);
    assert.equal(withTagRemark(result).content.length, 2, tag);
  }
  let deep: unknown = "\u{e0041}";
  for (let depth = 0; depth < 10_000; depth++) deep = [deep];
  assert.equal(withTagRemark({ content: [], structuredContent: deep }).content.length, 1);
});
