import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { fakeJsr, type Package } from "./fake_jsr.ts";
import { runPml } from "./run.ts";
import { makeWorkspace } from "./workspace.ts";

const SMALL: Package = {
  name: "@try/small",
  version: "1.2.3",
  exports: { ".": "./mod.ts" },
  imports: { "zod": "npm:zod@4.6.7" },
  files: {
    "mod.ts": `import { z } from "zod"; import json from "./a.json" with { type: "json" };
import text from "./text.ts" with { type: "text" };
const { late } = await import("./src/late.ts");
console.log(z.string().parse("zod"), json.a, text.trim(), late, Deno.args[0]);`,
    "a.json": `{ "a": 1 }`,
    "text.ts": `const no: number = 2;\n`,
    "src/late.ts": `import { z } from "zod/mini"; export const late = typeof z.string;`,
  },
};

Deno.test("fakeJsr() serves a package that Deno installs, and that runs without the registry", async () => {
  await using ws = await makeWorkspace();
  const command = [process.execPath] as const;
  const jsr = fakeJsr(SMALL);
  const env = { DENO_DIR: join(ws.root, "cache"), JSR_URL: `${jsr.url}/` };
  {
    await using _open = jsr;
    const args = ["install", "-gA", "-n", "small", "--root", ws.root, "jsr:@try/small"];
    const installed = await runPml(ws, args, { command, env, ms: 120_000 });
    assert.equal(installed.code, 0, installed.stderr);
  }
  const result = await runPml(ws, ["hi"], { command: [join(ws.root, "bin", "small")], env });
  assert.equal(result.stdout, "zod 1 const no: number = 2; function hi\n", result.stderr);
});
