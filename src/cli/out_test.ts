import assert from "node:assert/strict";
import fc from "fast-check";
import { commandProcess, runIn } from "./command_process.ts";
import { escapeControls, fitToTerminal } from "./out.ts";

Deno.test("escapeControls() leaves lines, tabs and letters, and shows what steers a terminal", () => {
  assert.equal(escapeControls("a\tb\r\nc\nä 日\n"), "a\tb\r\nc\nä 日\n");
  assert.equal(escapeControls("\x1b[2J"), "\\u{1b}[2J");
  assert.equal(escapeControls("a\rb"), "a\\u{d}b");
  assert.equal(escapeControls("\u202e\u200b\u0085"), "\\u{202e}\\u{200b}\\u{85}");
});

Deno.test("escapeControls() lets no control character through but line ends and tabs", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
    assert.ok(
      !/[^\P{C}\n\t]/u.test(escapeControls(text).replaceAll("\r\n", "").replace(/\p{Cn}/gu, "")),
    );
  }));
});

Deno.test("escapeControls() shows a line of any length", () => {
  const long = "x".repeat(20_000_000);
  assert.ok(escapeControls(`${long}\u009b`) === `${long}\\u{9b}`);
});

Deno.test("fitToTerminal() repeats the mark of lines of another program where it breaks them", () => {
  const output = { ...commandProcess(), consoleSize: () => ({ columns: 24, rows: 10 }) };
  const lines = runIn(output, () => fitToTerminal("  It printed:\n    | one two three four five"));
  assert.equal(lines, "  It printed:\n    | one two three four\n    | five");
});
