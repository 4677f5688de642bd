import assert from "node:assert/strict";
import { join } from "node:path";
import { findProgram, programEndings, withEnding } from "./search_path.ts";

function place(names: readonly string[]) {
  const root = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "pml-path-" }));
  for (const name of names) Deno.writeTextFileSync(join(root, name), "", { mode: 0o644 });
  const where = { path: [root], workspace: join(root, "workspace"), os: "windows" as const };
  return { root, where, [Symbol.dispose]: () => Deno.removeSync(root, { recursive: true }) };
}

Deno.test("findProgram() finds programs on Windows by their extensions", () => {
  using made = place(["npx", "npx.cmd", "uvx.exe", "uvx.cmd", "tool.py", "b.com", "b.exe"]);
  const find = (name: string) => findProgram(name, made.where)?.slice(made.root.length + 1);
  assert.deepEqual(["npx", "npx.cmd", "uvx", "b"].map(find), [
    "npx.cmd",
    "npx.cmd",
    "uvx.exe",
    "b.com",
  ]);
  assert.deepEqual(["tool", "tool.py", "a\\npx", "C:npx"].map(find), Array(4).fill(undefined));
  assert.equal(findProgram("npx.cmd", { ...made.where, os: "linux" }), undefined, "it has no mode");
});

Deno.test("findProgram() finds programs on Windows in the order of the folders", () => {
  using first = place(["git.cmd"]);
  using second = place(["git.exe"]);
  const path = [first.root, second.root];
  assert.equal(findProgram("git", { ...first.where, path }), join(first.root, "git.cmd"));
});

Deno.test("programEndings() is empty where the mode of a file makes it a program", () => {
  assert.deepEqual(programEndings("linux"), []);
  assert.equal(programEndings("windows").at(-1), ".cmd");
});

Deno.test("withEnding() adds a missing extension on Windows", () => {
  using made = place(["npx", "npx.cmd", "uvx.exe"]);
  const found = (name: string) => withEnding(join(made.root, name), "windows");
  const wanted = ["npx.cmd", "npx.cmd", "uvx.exe", "none"].map((name) => join(made.root, name));
  assert.deepEqual(["npx", "npx.cmd", "uvx", "none"].map(found), wanted);
  assert.equal(withEnding("/bin/npx", "linux"), "/bin/npx");
});
