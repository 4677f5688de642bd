import assert from "node:assert/strict";
import { checkSentences, figuresOf } from "../bench/intents/sentences.ts";

Deno.test("plans from 100 sentences are right for more than half, and no wrong one runs", async () => {
  for (const half of ["tune", "kept"] as const) {
    const { sentences, right, wrongAndSure, wrongAndRun } = figuresOf(await checkSentences(half));
    assert.equal(sentences, 50);
    assert.ok(right >= 25, `${half}: ${right} right`);
    assert.ok(wrongAndSure <= 1, `${half}: ${wrongAndSure} wrong with a confidence above 0.8`);
    assert.equal(wrongAndRun, 0, half);
  }
});
