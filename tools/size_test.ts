import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repoFile } from "../tests/kit/pml_command.ts";
import { committedSizes, dataSize, formatSizes, installSizeOf, sizeOf, TOLERANCE } from "./size.ts";

Deno.test("sizeOf() counts code and text imports, and no packages", async () => {
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

Deno.test("own code and npm packages stay within a tenth of the committed sizes", async () => {
  const committed = await committedSizes();
  const own = await sizeOf(repoFile("mod.ts"), repoFile("deno.json"));
  const npm = await installSizeOf(repoFile("mod.ts"));
  const report = [
    `own code ${own.gzipped} of ${committed.ownCode}, npm ${npm.bytes} of ${committed.npm} bytes.`,
    "If the growth is intended, raise tools/sizes.json and state the reason there.",
    formatSizes(own.modules),
    formatSizes(npm.largest),
  ].join("\n");
  console.log(report);
  assert.ok(own.gzipped <= committed.ownCode * (1 + TOLERANCE), report);
  assert.ok(npm.bytes <= committed.npm * (1 + TOLERANCE), report);
  assert.ok(await dataSize() <= committed.data, "the word vectors have grown");
  assert.ok(npm.packages > 5, `${npm.packages} packages were found`);
});
