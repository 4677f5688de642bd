import assert from "node:assert/strict";
import type { Json } from "../../core/json.ts";
import { asResult } from "./modules.ts";

Deno.test("asResult() makes a result of any value that a module returns", () => {
  const table: readonly (readonly [Json, unknown])[] = [
    [null, { content: [] }],
    ["text", { content: [{ type: "text", text: "text" }] }],
    [[1], { content: [{ type: "text", text: "[1]" }], structuredContent: [1] }],
    [{ content: [{ type: "text", text: "own" }], isError: true }, {
      content: [{ type: "text", text: "own" }],
      isError: true,
    }],
  ];
  for (const [value, result] of table) assert.deepEqual(asResult(value), result);
});

Deno.test("asResult() removes members that would make a result a question of PML", () => {
  const asks = { content: [], resultType: "input_required", inputRequests: {}, requestState: "x" };
  assert.deepEqual(asResult(asks), { content: [] });
});

Deno.test("asResult() refuses a result with too many blocks, and reports their number", () => {
  const content = Array.from({ length: 5_000 }, () => ({ type: "text", text: "" }));
  assert.throws(() => asResult({ content }), {
    code: "RESULT_TOO_LARGE",
    detail: { size: 5_000, max: 4_096 },
  });
});
