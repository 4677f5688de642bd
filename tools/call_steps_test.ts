import assert from "node:assert/strict";
import { repoFile } from "../tests/kit/pml_command.ts";

Deno.test("docs/design.md lists the checks of a call in the order of the code", async () => {
  const [page, code] = await Promise.all([
    Deno.readTextFile(repoFile("docs/design.md")),
    Deno.readTextFile(repoFile("src/calls/checks.ts")),
  ]);
  const [, table = ""] = /\| check .*?\n(.*?)\n\n/s.exec(page) ?? [];
  const documented = [...table.matchAll(/^ *\| `(\w+)`/gm)].map(([, name]) => name);
  const [, list = ""] = /\nexport const CHECKS.*? = \[\n(.*?)\n\];/s.exec(code) ?? [];
  const checks = list.split("\n").map((line) => /=> (\w+)/.exec(line)?.[1]);
  assert.ok(checks.length > 5);
  assert.deepEqual(documented, checks);
});

Deno.test("only the runner of the pipeline passes calls to servers of the directory", async () => {
  const callers: string[] = [];
  const read = async (folder: string) => {
    for await (const { name, isDirectory } of Deno.readDir(folder)) {
      const path = `${folder}/${name}`;
      if (isDirectory) await read(path);
      else if (name.endsWith(".ts") && !name.endsWith("_test.ts")) {
        const text = await Deno.readTextFile(path);
        if (/\bserver\b[?)]*\.call\(/.test(text)) {
          callers.push(path.slice(repoFile("src").length + 1));
        }
      }
    }
  };
  await read(repoFile("src"));
  assert.deepEqual(callers.sort(), ["calls/server_runner.ts", "servers/directory.ts"]);
});
