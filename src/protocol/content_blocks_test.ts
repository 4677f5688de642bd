import assert from "node:assert/strict";
import { isCallToolResult } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { isContentBlock } from "./content_blocks.ts";

/** Returns a value that is mostly the right one. */
function mostly(...right: readonly unknown[]): fc.Arbitrary<unknown> {
  const odd = fc.constantFrom<unknown>(1, "x", null, true, {}, [], ["user"]);
  return fc.oneof({ arbitrary: fc.constantFrom(...right), weight: 14 }, {
    arbitrary: odd,
    weight: 1,
  });
}

const annotations = fc.record({
  audience: mostly(["user"], ["assistant", "user"], []),
  priority: mostly(0, 0.5, 1, 2),
  lastModified: mostly("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.6+01:00", "2026-01-02", "now"),
}, { requiredKeys: [] });
const contents = fc.record({
  uri: mostly("a:b"),
  mimeType: mostly("text/plain"),
  text: mostly("t"),
  blob: mostly("aGk=", "?"),
  _meta: mostly({}),
}, { requiredKeys: ["uri"] });
const icons = fc.array(
  fc.record({
    src: mostly("data:,"),
    sizes: mostly(["16x16"]),
    theme: mostly("dark", "light"),
  }, { requiredKeys: ["src"] }),
  { maxLength: 2 },
);
const block = fc.record({
  type: mostly("text", "image", "audio", "resource", "resource_link"),
  text: mostly("t"),
  data: mostly("aGk=", "!"),
  mimeType: mostly("image/png"),
  resource: contents,
  uri: mostly("a:b"),
  name: mostly("n"),
  title: mostly("t"),
  size: mostly(5),
  icons,
  annotations,
  _meta: mostly({ a: 1 }),
}, { requiredKeys: ["type"] });

Deno.test("isContentBlock() accepts exactly the blocks that the SDK accepts", () => {
  const count = { yes: 0, no: 0 };
  fc.assert(
    fc.property(block, (one) => {
      const is = isContentBlock(one);
      assert.equal(is, isCallToolResult({ content: [one] }));
      count[is ? "yes" : "no"]++;
    }),
    { numRuns: 20_000, seed: 7 },
  );
  assert.ok(count.yes > 2_000 && count.no > 2_000, JSON.stringify(count));
  for (const one of [null, 1, "text", [], {}]) assert.equal(isContentBlock(one), false);
});
