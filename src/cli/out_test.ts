import assert from "node:assert/strict";
import fc from "fast-check";
import { harmless } from "./out.ts";

Deno.test("harmless() leaves lines, tabs and letters, and shows what steers a terminal", () => {
  assert.equal(harmless("a\tb\r\nc\nä 日\n"), "a\tb\r\nc\nä 日\n");
  assert.equal(harmless("\x1b[2J"), "\\u{1b}[2J");
  assert.equal(harmless("a\rb"), "a\\u{d}b");
  assert.equal(harmless("\u202e\u200b\u0085"), "\\u{202e}\\u{200b}\\u{85}");
});

Deno.test("harmless() lets no control character through but line ends and tabs", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    assert.ok(!/[^\P{C}\n\t]/u.test(harmless(text).replaceAll("\r\n", "").replace(/\p{Cn}/gu, "")));
  }));
});

Deno.test("harmless() shows a line of any length", () => {
  const long = "x".repeat(20_000_000);
  assert.ok(harmless(`${long}\u009b`) === `${long}\\u{9b}`);
});
