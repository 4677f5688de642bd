import assert from "node:assert/strict";
import { assertGolden } from "../../tests/kit/golden.ts";
import type { PmlError } from "../core/errors.ts";
import { serveRegistry } from "./_registry.ts";

Deno.test("registry() reports files that it cannot serve before it opens anything", async () => {
  const rows = [
    [["publish", "."], {}],
    [["serve", "nowhere"], {}],
    [["serve", "deno.json"], {}],
    [["serve", "."], { port: "70000" }],
    [["serve", "."], { key: "nowhere.pem" }],
    [["serve", "."], { key: "deno.json" }],
    [["serve", "."], { port: "80a" }],
  ] as const;
  const messages: string[] = [];
  for (const [words, options] of rows) {
    await assert.rejects(serveRegistry({ words, ...options }), (error: PmlError) => {
      assert.equal(error.code, "USAGE");
      messages.push(error.message);
      return true;
    });
  }
  assertGolden("registry/serve with wrong options", messages.join("\n"));
});
