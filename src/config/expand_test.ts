import assert from "node:assert/strict";
import type { PmlError } from "../core/errors.ts";
import { expanded, referencesIn } from "./expand.ts";

const from = (set: Record<string, string>) => ({
  get: (name: string) => set[name],
  server: "db",
});

Deno.test("expanded() fills in names and defaults, in every kind of place", () => {
  const env = { A: "${TOKEN}", B: "x-${TOKEN}-${NONE:-y}", C: "plain $HOME", D: "${EMPTY:-}" };
  const given = { env, args: { "0": "--key=${TOKEN}" } };
  assert.deepEqual(expanded(given, from({ TOKEN: "s3cret\nof two lines" })), {
    env: {
      A: "s3cret\nof two lines",
      B: "x-s3cret\nof two lines-y",
      C: "plain $HOME",
      D: "",
    },
    args: { "0": "--key=s3cret\nof two lines" },
  });
});

Deno.test("expanded() tells every missing name of every place at once", () => {
  const given = {
    env: { A: "${ONE}", B: "${TWO}${THREE}" },
    args: { "1": "${ONE}${PML_API_KEY}" },
  };
  assert.throws(() => expanded(given, from({ THREE: "3" })), (error: PmlError) => {
    assert.equal(error.code, "KEY_MISSING");
    assert.equal(error.message, 'Cannot start "db": it requires ONE, TWO, PML_API_KEY');
    assert.match(
      error.hint ?? "",
      /env\.A, env\.B, args\.1, args\.1; no server gets/,
    );
    assert.deepEqual(error.detail, { missing: ["ONE", "TWO", "PML_API_KEY"] });
    return true;
  });
});

Deno.test("expanded() refuses a value that cannot be sent, by the name of its variable alone", () => {
  const bad: readonly (readonly [string, "headers" | "url" | "env"])[] = [
    ["CANARY\nx: y", "headers"],
    ["CANARY\r", "headers"],
    ["CANARYé", "headers"],
    ["CANARY→", "url"],
    ["CANARY\0", "env"],
    ["CANARY".repeat(200_000), "env"],
    ["CANARY".repeat(200_000), "headers"],
  ];
  for (const [value, kind] of bad) {
    const fill = () => expanded({ [kind]: { X: "Bearer ${TOKEN}" } }, from({ TOKEN: value }));
    assert.throws(fill, (error: PmlError) => {
      assert.equal(error.code, "CONFIG_INVALID");
      assert.match(error.message, /^Cannot start "db": TOKEN (holds|is longer)/);
      assert.doesNotMatch(Deno.inspect(error), /CANARY/);
      return true;
    });
  }
});

Deno.test("referencesIn() tells each variable, what stands for it, and where", () => {
  const given = { headers: { Authorization: "Bearer ${A}", Other: "${B:-}" }, url: { "": "x" } };
  assert.deepEqual(referencesIn(given), [
    { name: "A", otherwise: undefined, at: "headers.Authorization" },
    { name: "B", otherwise: "", at: "headers.Other" },
  ]);
});
