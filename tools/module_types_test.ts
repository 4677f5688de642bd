import assert from "node:assert/strict";
import { moduleTypes, OUTPUT } from "./module_types.ts";

Deno.test("config/module-types.d.ts is what its sources give", async () => {
  const shipped = await Deno.readTextFile(OUTPUT);
  assert.equal(shipped, await moduleTypes(), "run `deno run -A tools/module_types.ts`");
  for (const name of ["Host", "Meta", "Permissions", "ToolResult", "Progress", "Database"]) {
    assert.match(shipped, new RegExp(`^export interface ${name}\\b`, "m"));
  }
});

Deno.test("mod.ts exports each type that modules are given", async () => {
  const shipped = await Deno.readTextFile(OUTPUT);
  const face = await Deno.readTextFile(new URL("../mod.ts", import.meta.url));
  for (const [, name] of shipped.matchAll(/^export \w+ (\w+)/gm)) {
    assert.match(face, new RegExp(`export [^;]*\\b${name}\\b[^;]* from`), name);
  }
});
