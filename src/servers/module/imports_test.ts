import assert from "node:assert/strict";
import { findImport, findImports } from "./imports.ts";

Deno.test("findImport() finds every way of loading another file, with its place", async () => {
  const table: readonly (readonly [string, string])[] = [
    ['import x from "./x.ts";', "./x.ts"],
    ['import "node:fs";', "node:fs"],
    ['import * as x from "npm:x";', "npm:x"],
    ['import text from "file:///etc/passwd" with { type: "text" };', "file:///etc/passwd"],
    ['export * from "https://example.com/x.ts";', "https://example.com/x.ts"],
    ['export { a } from "data:text/javascript,0";', "data:text/javascript,0"],
    ['export * as all from "./all.ts";', "./all.ts"],
    ['/* import */ import/**/x/**/from/**/"./c.ts"', "./c.ts"],
  ];
  for (const [text, specifier] of table) {
    const found = await findImport(`// first line\nconst a: number = 1 / 2;\n${text}\n`, "x.ts");
    const column = text.search(/(?<!\* )(?:im|ex)port/) + 1;
    assert.deepEqual(found, { specifier, line: 3, column }, text);
  }
});

Deno.test("findImport() is not misled by text, comments, types and dynamic imports", async () => {
  const innocent = [
    'const s = "import x from \\"./x.ts\\"";',
    '// import x from "./x.ts"',
    "const r = /import x from 'y'/;",
    "const t = `import x from 'y' ${1 / 2}`;",
    'import type { Host } from "./host.ts";',
    'export type { Host } from "./host.ts";',
    'const later = () => import("./later.ts");',
    "export const url = import.meta.url;",
    "export async function f<T>(a: { b: string }): Promise<T> { return (a as unknown) as T; }",
  ];
  for (const text of innocent) assert.equal(await findImport(text, "x.ts"), undefined, text);
});

Deno.test("findImport() throws for a text that it cannot read", async () => {
  const message = /"x\.ts": /;
  for (const text of ["const a = 1;\nconst b = ) ;", "export const a = {;\n"]) {
    await assert.rejects(findImport(text, "x.ts"), { code: "CONFIG_INVALID", message });
  }
});

Deno.test("findImports() separates static imports, dynamic imports and imports of types", async () => {
  const text = `import type { A } from "a";
export type { B } from "b";
import c from "c";
const d = import("d"), e: typeof import("e") = await import(name);
`;
  assert.deepEqual(await findImports(text, "x.ts"), {
    loading: [{ specifier: "c", line: 3, column: 1 }],
    dynamic: [{ specifier: "d", line: 4, column: 11 }, { specifier: "?", line: 4, column: 54 }],
    types: ["a", "b"],
  });
});

Deno.test("findImport() and findImports() end soon in a file full of imports", async () => {
  const before = performance.now();
  const { loading } = await findImports('import "x";\n'.repeat(100_000), "x.ts");
  assert.ok(loading.length > 0 && performance.now() - before < 5_000);
});
