/**
 * The pictures of the pages show what PML shows.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { repoFile } from "../tests/kit/pml_command.ts";
import { FOLDER, pictures } from "./pictures.ts";
import { drawPicture } from "./pictures/drawing.ts";
import { SCREENS } from "./pictures/screens.ts";

Deno.test("the pictures show the present output of commands (`deno task pictures` updates them)", async () => {
  const made = await pictures();
  const there = (await Array.fromAsync(Deno.readDir(repoFile(FOLDER)))).map(({ name }) => name);
  assert.deepEqual(there.sort(), Object.keys(made).sort());
  for (const [name, svg] of Object.entries(made)) {
    assert.equal(await Deno.readTextFile(join(repoFile(FOLDER), name)), svg, name);
  }
});

Deno.test("the pictures are small, have descriptions, and name nothing of the machine", async () => {
  for await (const { name } of Deno.readDir(repoFile(FOLDER))) {
    const svg = await Deno.readTextFile(join(repoFile(FOLDER), name));
    assert.ok(new TextEncoder().encode(svg).length < 20_000, name);
    assert.match(svg, /^<svg [^>]*role="img" aria-labelledby="title desc"/, name);
    assert.match(svg, /<title id="title">.+<\/title>\n<desc id="desc">.+<\/desc>/, name);
    // What else begins at the top folder, or is an address, is of the machine.
    const bare = svg.replace("http://www.w3.org/2000/svg", "");
    assert.doesNotMatch(bare, /[\s"'(]\/\w|:\/\/|\d\d:\d\d:\d\d|[0-9a-f]{16}/, name);
  }
});

Deno.test("the pictures of the page are there in both themes, and small", async () => {
  for (const name of ["page-light.png", "page-dark.png"]) {
    const png = await Deno.readFile(join(repoFile(SCREENS), name));
    assert.equal(String.fromCharCode(...png.subarray(1, 4)), "PNG", name);
    assert.ok(png.length < 150_000, name);
  }
});

Deno.test("drawPicture() escapes text, keeps colours and breaks lines between words", () => {
  const screen = `a <b> & "c"\n\u001b[32mgood\u001b[39m ${"word ".repeat(30)}`;
  const svg = drawPicture({
    title: "x < y",
    scenes: [{ caption: "one", line: "say <it>", screen }],
  });
  assert.match(svg, /<title id="title">x &lt; y<\/title>/);
  assert.match(svg, /<desc id="desc">.*one say &lt;it&gt;<\/desc>/);
  assert.ok(svg.includes(">a &lt;b&gt; &amp; &quot;c&quot;</text>"), svg);
  assert.ok(svg.includes('<tspan class="g">good</tspan> word'), svg);
  for (const [row, line = ""] of svg.matchAll(/<text[^>]*>(.*)<\/text>/g)) {
    assert.match(row, /^<text [^>]*xml:space="preserve">/, "columns stay where they are");
    assert.ok(line.replace(/<[^>]*>|&\w+;/g, "").length <= 100, line);
    assert.doesNotMatch(line, /\bwor$/);
  }
});

Deno.test("drawPicture() shows one line after the other, and all lines without animations", () => {
  const scenes = [{ line: "one", screen: "1" }, { line: "two", screen: "" }];
  const svg = drawPicture({ title: "t", scenes });
  const delays = [...svg.matchAll(/animation-delay:([\d.]+)s/g)].map(([, at]) => Number(at));
  assert.deepEqual(delays, [0.6, 1.5]);
  assert.match(svg, /@media\(prefers-reduced-motion:reduce\)\{\.s\{animation:none\}\}/);
  // Only the animation hides: without it everything is there.
  assert.equal(svg.match(/hidden\}/g)?.length, 1);
  assert.doesNotMatch(svg, /opacity|display/);
});
