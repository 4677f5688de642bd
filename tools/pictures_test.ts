/**
 * The pictures of the pages show what PML shows.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { repoFile } from "../tests/kit/pml_command.ts";
import { FOLDER, pictures } from "./pictures.ts";
import { drawn } from "./pictures/drawing.ts";

Deno.test("The pictures are what the commands show now; `deno task pictures` makes them anew", async () => {
  const made = await pictures();
  const there = (await Array.fromAsync(Deno.readDir(repoFile(FOLDER)))).map(({ name }) => name);
  assert.deepEqual(there.sort(), Object.keys(made).sort());
  for (const [name, svg] of Object.entries(made)) {
    assert.equal(await Deno.readTextFile(join(repoFile(FOLDER), name)), svg, name);
  }
});

Deno.test("drawn() escapes what is shown, keeps colours and breaks lines between words", () => {
  const text = `a <b> & "c"\n\u001b[32mgood\u001b[39m ${"word ".repeat(30)}`;
  const svg = drawn({ title: "x < y", text });
  assert.match(svg, /<title>x &lt; y<\/title>/);
  assert.ok(svg.includes(">a &lt;b&gt; &amp; &quot;c&quot;</text>"), svg);
  assert.ok(svg.includes('<tspan fill="#7ee787">good</tspan> word'), svg);
  for (const [, line = ""] of svg.matchAll(/<text[^>]*>(.*)<\/text>/g)) {
    assert.ok(line.replace(/<[^>]*>|&\w+;/g, "").length <= 101, line);
    assert.doesNotMatch(line, /\bwor$/);
  }
});
