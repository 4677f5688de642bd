import assert from "node:assert/strict";
import { shellWord } from "./_shell_word.ts";

Deno.test("shellWord() quotes as the shells of each system do", () => {
  const words = ["--json", "a b", "it's", "C:\\a\\b.txt", 'say "hi"'];
  assert.deepEqual(words.map((word) => shellWord(word, "linux")), [
    "--json",
    "'a b'",
    "'it'\\''s'",
    "'C:\\a\\b.txt'",
    `'say "hi"'`,
  ]);
  assert.deepEqual(words.map((word) => shellWord(word, "windows")), [
    "--json",
    '"a b"',
    `"it's"`,
    "C:\\a\\b.txt",
    '"say \\"hi\\""',
  ]);
});
