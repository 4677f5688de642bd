import assert from "node:assert/strict";
import { joinSentences } from "./sentences.ts";

Deno.test("joinSentences() ends a line with a full stop only where the next one begins a sentence", () => {
  const texts: readonly (readonly [readonly string[], string])[] = [
    [["it has changed", "  If you agree, it runs"], "it has changed. If you agree, it runs"],
    [['it is "a"', "Read it"], 'it is "a". Read it'],
    [["It ended.", "", "Next: run it"], "It ended. Next: run it"],
    [["Error: no access", "at line 3"], "Error: no access at line 3"],
    [["It changed:", "Its name"], "It changed: Its name"],
    [[], ""],
  ];
  for (const [lines, text] of texts) assert.equal(joinSentences(lines), text);
});
