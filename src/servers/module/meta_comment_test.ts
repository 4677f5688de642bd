import assert from "node:assert/strict";
import { PmlError } from "../../core/errors.ts";
import { parseModuleMeta } from "../../protocol/tool.ts";
import { metaComment } from "./meta_comment.ts";

Deno.test("metaComment() reads the first line only", () => {
  const line = '// __meta__: {"name": "fs", "tools": ["fs:read_json", "list"]}';
  const meta = parseModuleMeta(metaComment(`${line}\nexport function x() {}`, "x.ts"), "x.ts");
  assert.deepEqual(meta.tools.map(({ definition }) => definition), [
    { name: "read_json", inputSchema: { type: "object" } },
    { name: "list", inputSchema: { type: "object" } },
  ]);
  assert.equal(metaComment(`\n${line}`, "x.ts"), undefined);
  assert.equal(metaComment("export {}", "x.ts"), undefined);
});

Deno.test("metaComment() reports a line that is not JSON", () => {
  assert.throws(
    () => metaComment("// __meta__: {nonsense}", "x.ts"),
    (error) => error instanceof PmlError && error.code === "CONFIG_INVALID",
  );
});
