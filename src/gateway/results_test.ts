import assert from "node:assert/strict";
import { forOlderClient } from "./results.ts";

Deno.test("forOlderClient() gives structured content that is no object as text", () => {
  const block = { type: "text", text: "said" };
  const object = { content: [block], structuredContent: { a: 1 } };
  assert.deepEqual(forOlderClient(object), object);
  assert.deepEqual(forOlderClient({ content: [block] }), { content: [block] });
  assert.deepEqual(forOlderClient({ content: [block], structuredContent: [1] }), {
    content: [block],
  });
  assert.deepEqual(forOlderClient({ content: [], structuredContent: [1] }), {
    content: [{ type: "text", text: "[1]" }],
  });
});
