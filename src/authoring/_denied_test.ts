import assert from "node:assert/strict";
import { DENIED } from "../sandbox/denied_names.ts";
import { findDenied } from "./_denied.ts";

const listed = (lists: Readonly<Record<string, string>>) =>
  Object.values(lists).flatMap((list) => list.split(" "));
const names = (text: string) => findDenied(text).map(({ name }) => name);

Deno.test("findDenied() finds all that the sandbox takes away, with the line", () => {
  const all = [
    ...listed(DENIED.inDeno).map((name) => `Deno.${name}`),
    "Deno.env",
    "process.env",
  ];
  for (const name of all) {
    assert.deepEqual(names(`const a = 1;\nawait ${name}("x");`), [name]);
    assert.equal(findDenied(`\n\n${name};`)[0]?.line, 3);
  }
  for (const name of listed(DENIED.global)) {
    const text = name === "fetch" ? "return fetch(x)" : `const w = new ${name}("x")`;
    assert.deepEqual(names(text), [name]);
  }
});

Deno.test("findDenied() ignores names in comments, strings and members", () => {
  const quiet = [
    "// await fetch(x)",
    "/* new Worker(x)\n Deno.Command */",
    `const s = "await fetch(x)" + 'Deno.env';`,
    "const s = `return fetch(x)\n new Worker(1)`;",
    "await host.fetch(x); this.fetch(x); my.Deno.Command; $Deno.env; Deno.environment;",
    "export async function fetch(args) {}\nawait fetch(1);",
    "const fetch = host.fetch;\nreturn fetch(1);",
    "export function get({ url }, { fetch }) { return fetch(url); }",
    "const api = { fetch(url) { return url; } };",
    "class Worker {}\nnew Worker();",
    "Deno.readTextFile; Deno.kilogram; Deno.linkage",
  ];
  for (const text of quiet) assert.deepEqual(names(text), [], text);
});

Deno.test("findDenied() ends soon for any text", () => {
  const many = 100_000;
  const texts = ["`", '"\\', "'\\", "/*", "(", "fetch(", "await fetch (", "new Worker ", "=    "];
  for (const text of [...texts.map((part) => part.repeat(many)), "`" + "\\`".repeat(many) + "\\"]) {
    const before = performance.now();
    findDenied(text);
    findDenied(`const fetch = 1; ${text}`);
    assert.ok(performance.now() - before < 5_000, text.slice(0, 20));
  }
});
