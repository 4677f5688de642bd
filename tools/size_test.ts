import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repoFile } from "../tests/kit/pml_command.ts";
import { BUDGET, installSizeOf, sizeOf, startSizeOf, tellSize } from "./size.ts";

Deno.test("sizeOf() leaves packages out, and takes code and text imports in", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pml-size-test-"));
  const put = (name: string, text: string) => writeFile(join(folder, name), text);
  const noise = randomBytes(3000).toString("base64");
  await put("deno.json", `{ "imports": { "zod": "npm:zod@4.6.7" } }`);
  await put("text.ts", `// ${noise}`);
  await put(
    "plain.ts",
    `import { z } from "zod"; import "zod/mini"; import "npm:yaml@2.9.1";
    await import("zod"); export const a = z;`,
  );
  await put(
    "full.ts",
    `import text from "./text.ts" with { type: "text" };
    export { a } from "./plain.ts"; export const b = text;`,
  );
  try {
    const config = join(folder, "deno.json");
    const plain = await sizeOf(join(folder, "plain.ts"), config);
    assert.ok(plain.gzipped > 20 && plain.minified < 1000, JSON.stringify(plain));
    const full = await sizeOf(join(folder, "full.ts"), config);
    assert.ok(full.gzipped - plain.gzipped > 2900, JSON.stringify(full));
    await assert.rejects(sizeOf(join(folder, "none.ts"), config), /deno bundle failed/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

Deno.test("startSizeOf() leaves out what is loaded later", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pml-size-test-"));
  const put = (name: string, text: string) => writeFile(join(folder, name), text);
  const noise = () => `export const noise = "${randomBytes(3000).toString("base64")}";`;
  await mkdir(join(folder, "src"));
  await put("deno.json", "{}");
  await put("now.ts", noise());
  await put("later.ts", noise());
  await put("src/start.ts", `export { noise } from "../now.ts"; await import("../later.ts");`);
  try {
    const size = await startSizeOf(["src/start.ts"], folder);
    assert.ok(size > 2900 && size < 3900, `${size}`);
  } finally {
    await rm(folder, { recursive: true });
  }
});

Deno.test("installSizeOf() counts the packages that the code imports, and theirs", async () => {
  const { packages, bytes } = await installSizeOf(repoFile("mod.ts"));
  assert.ok(packages > 5 && packages < 15, `${packages}`);
  assert.ok(bytes > 5_000_000 && bytes < 30_000_000, `${bytes}`);
});

Deno.test("tellSize() says on which side of the budget the package is", () => {
  const size = { minified: 123_456, budget: BUDGET };
  assert.equal(
    tellSize({ ...size, gzipped: 204_999 }),
    "204,999 bytes gzipped (123,456 minified), within the budget of 205,000",
  );
  assert.match(tellSize({ ...size, gzipped: 205_000 }), /beyond the budget/);
});
