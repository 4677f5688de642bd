import assert from "node:assert/strict";
import { checkBlocks } from "./result_bounds.ts";

Deno.test("checkBlocks() refuses too many blocks, and reports their number", () => {
  checkBlocks("it", {});
  checkBlocks("it", { content: Array(4_096).fill(null) });
  assert.throws(() => checkBlocks("it", { content: Array(4_097).fill(null) }), {
    code: "RESULT_TOO_LARGE",
    detail: { size: 4_097, max: 4_096 },
  });
});

Deno.test("checkBlocks() refuses too many other members at each place that the SDK checks", () => {
  const wide = (size: number) => Array(size).fill("x");
  const names = (size: number) => Object.fromEntries(wide(size).map((_, at) => [`${at}`, 1]));
  const of = (size: number) => [
    { _meta: names(size) },
    { content: [{ _meta: names(size) }] },
    { content: [{}, { annotations: { audience: wide(size) } }] },
    { content: [{ icons: wide(size) }] },
    { content: [{ icons: [{}, { sizes: wide(size) }] }] },
    { content: [{ resource: { _meta: names(size) } }] },
  ];
  for (const each of of(500)) checkBlocks("it", each);
  for (const each of of(501)) {
    assert.throws(() => checkBlocks("it", each), /it has 501 .*, more than 500/);
  }
  checkBlocks("it", { content: [{ _meta: { deep: wide(5_000) }, text: "x" }] });
});
