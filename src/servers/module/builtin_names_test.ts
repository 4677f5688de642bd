import assert from "node:assert/strict";
import { BUILTIN_NAMES, RUNS_CODE } from "./builtin_names.ts";
import { builtins } from "./builtins.ts";

Deno.test("the names of built-ins are those of the modules that ship", () => {
  const shipped = builtins();
  assert.deepEqual([...BUILTIN_NAMES], [...shipped.keys()]);
  for (const id of RUNS_CODE) {
    const [server = "", tool = ""] = id.split(":");
    const source = shipped.get(server);
    assert.ok(source?.kind === "builtin" && tool in Object(source.meta).tools, id);
  }
});
