import assert from "node:assert/strict";
import { durationText } from "./amounts.ts";

Deno.test("durationText() returns milliseconds, seconds, or whole minutes", () => {
  const texts = [0, 300, 1_000, 1_500, 60_000, 90_000, 120_000, 150_000, 600_000].map(durationText);
  assert.deepEqual(texts, [
    ...["0 ms", "300 ms", "1 s", "1.5 s", "60 s", "90 s", "2 min", "150 s", "10 min"],
  ]);
});
