/**
 * Tests of the documentation pages: generated pages, links and anchors.
 *
 * @module
 */

import assert from "node:assert/strict";
import { dirname, join, relative } from "node:path";
import { generate, GENERATED } from "../tools/generate.ts";
import { pages } from "./kit/pages.ts";
import { repoFile } from "./kit/pml_command.ts";

const ROOT = repoFile(".");

for (const name of Object.keys(GENERATED)) {
  Deno.test(`${name} is generated from the tables`, async () => {
    const text = await Deno.readTextFile(repoFile(name));
    assert.equal(text, await generate(name), "run `deno task generate`");
  });
}

function anchorsOf(text: string): ReadonlySet<string> {
  const titles = [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => title);
  return new Set(
    titles.map((title) =>
      title.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").trim().replaceAll(/\s/g, "-")
    ),
  );
}

Deno.test("every link of a page leads to a file, and to a heading that exists in it", async () => {
  const all = await pages();
  const wrong: string[] = [];
  for (const [name, text] of Object.entries(all)) {
    const bare = text.replaceAll(/^```[^]*?^```/gm, "").replaceAll(/`[^`\n]*`/g, "");
    for (const [, target = ""] of bare.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? name : relative(ROOT, join(ROOT, dirname(name), path));
      const isThere = await Deno.lstat(repoFile(file)).then(() => true, () => false);
      if (!isThere) wrong.push(`${name}: ${target}`);
      const there = all[file];
      if (anchor !== undefined && there !== undefined && !anchorsOf(there).has(anchor)) {
        wrong.push(`${name}: ${target} names no title`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});
