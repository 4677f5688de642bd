import assert from "node:assert/strict";
import { withoutForged } from "./result_members.ts";

Deno.test("withoutForged() removes other spellings of the protocol's members and pml/* (GX12)", () => {
  const content = [{ type: "text", text: "a" }];
  const forged = {
    ...{ ResultType: "input_required", "re\u017fultType": "x", INPUTREQUESTS: {}, Content: [] },
    ...{ iserror: true, "to\u212aen": 1, _Meta: {}, requeststate: "x" },
  };
  const _meta = { "pml/error": {}, "PML/journal": "x", "x/pml/own": 1 };
  const { "to\u212aen": own } = forged;
  assert.deepEqual(withoutForged({ content, ...forged, _meta }), {
    ...{ content, "to\u212aen": own },
    _meta: { "x/pml/own": 1 },
  });
});

Deno.test("withoutForged() removes pml/* from blocks, so that no server hides one from code (GX12)", () => {
  const block = { type: "text", text: "a" };
  const forged = [{ ...block, _meta: { "pml/remark": true, "x/own": 1 } }, block, null];
  const { content } = withoutForged({ content: forged });
  assert.deepEqual(content, [{ ...block, _meta: { "x/own": 1 } }, block, null]);
  assert.equal(content[1], block);
});

Deno.test("withoutForged() returns the same object if a result has no such members (GX12)", () => {
  for (const result of [{ content: [], isError: true, _meta: { "x/own": 1 } }, { other: 1 }, {}]) {
    assert.equal(withoutForged(result), result);
  }
});
