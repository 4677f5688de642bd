import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { PACKAGES } from "./_offline.ts";

const SOURCE = new URL("../", import.meta.url);

Deno.test("pml install --offline-ready loads every package that a file of PML imports", async () => {
  const { imports } = JSON.parse(await readFile(new URL("../deno.json", SOURCE), "utf8"));
  const used = new Set<string>();
  for (const path of await readdir(SOURCE, { recursive: true })) {
    // The programs of children and the writer of protobuf are bundled with their packages.
    const isBundled = path.includes("boot") || path.endsWith("_main.ts");
    if (!path.endsWith(".ts") || path.endsWith("_test.ts") || isBundled) continue;
    const text = await readFile(new URL(path, SOURCE), "utf8");
    for (const [, name = ""] of text.matchAll(/(?:^import |from |import\()"([@\w][^":]*)"/gm)) {
      const known = Object.keys(imports).find((key) => name === key || name.startsWith(`${key}/`));
      if (known !== undefined) used.add(known);
    }
  }
  assert.deepEqual(Object.keys(PACKAGES).sort(), [...used].sort());
});
