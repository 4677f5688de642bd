import assert from "node:assert/strict";
import { isDefined } from "../src/protocol/revisions.ts";
import { repoFile } from "../tests/kit/pml_command.ts";

/** A hop: a member or a function, and its file. */
const HOP = /^ *\d+\. `([^`]+)`\s+\(`([^`]+\.ts)`\)/gm;

Deno.test("docs/design.md names existing members in the path of a call", async () => {
  const page = await Deno.readTextFile(repoFile("docs/design.md"));
  const [, hops = ""] = /\n## The path of [^\n]*\n(.*?)\n## /s.exec(page) ?? [];
  const rows = [...hops.matchAll(HOP)];
  assert.ok(rows.length > 20, `${rows.length} rows`);
  for (const [, member = "", file = ""] of rows) {
    const code = await Deno.readTextFile(repoFile(`src/${file}`));
    for (const name of member.split(".")) assert.ok(code.includes(name), `${name} in ${file}`);
  }
});

Deno.test("docs/design.md names existing files", async () => {
  const page = await Deno.readTextFile(repoFile("docs/design.md"));
  const paths = [...page.matchAll(/`((?:[a-z_]+\/)+[a-z_]+\.(?:ts|json))`/g)].map(([, path]) =>
    path
  );
  assert.ok(paths.length > 20, `${paths.length} paths`);
  for (const path of new Set(paths)) {
    const files = [`src/${path}`, `${path}`].map((one) => repoFile(one));
    const exists = await Promise.all(files.map((one) => Deno.stat(one).catch(() => undefined)));
    assert.ok(exists.some((one) => one !== undefined), `${path} does not exist`);
  }
});

Deno.test("src/transport contains no method of the protocol", async () => {
  const methods: string[] = [];
  const look = async (folder: string) => {
    for await (const { name, isDirectory } of Deno.readDir(repoFile(folder))) {
      const path = `${folder}/${name}`;
      if (isDirectory) await look(path);
      else if (name.endsWith(".ts") && !name.endsWith("_test.ts")) {
        const code = await Deno.readTextFile(repoFile(path));
        const texts = [...code.matchAll(/"([\w/]+)"/g)].map(([, text = ""]) => text);
        methods.push(...texts.filter(isDefined).map((text) => `${path}: ${text}`));
      }
    }
  };
  await look("src/transport");
  assert.deepEqual(methods, []);
});
