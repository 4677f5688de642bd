import assert from "node:assert/strict";
import { expanded } from "./expand.ts";

const from = (set: Record<string, string>) => ({
  get: (name: string) => set[name],
  server: "db",
  what: "env" as const,
});

Deno.test("expanded() fills in names and defaults, and tells which values are secret", () => {
  const values = { A: "${TOKEN}", B: "x-${TOKEN}-${NONE:-y}", C: "plain $HOME", D: "${EMPTY:-}" };
  assert.deepEqual(expanded(values, from({ TOKEN: "s3cret", EMPTY: "" })), {
    values: { A: "s3cret", B: "x-s3cret-y", C: "plain $HOME", D: "" },
    secrets: ["s3cret", "s3cret"],
  });
});

Deno.test("expanded() tells every missing name at once, and takes a placeholder for none", () => {
  const values = { A: "${ONE}", B: "${TWO}${THREE}" };
  assert.throws(() => expanded(values, from({ TWO: "${TWO}", THREE: "3" })), (error: Error) => {
    const { code, message, hint } = error as Error & {
      readonly code: string;
      readonly hint: string;
    };
    assert.deepEqual([code, message], ["KEY_MISSING", 'Cannot start "db": it requires ONE, TWO']);
    assert.match(hint, /env\.A, env\.B in \.pml\.json/);
    return true;
  });
});
