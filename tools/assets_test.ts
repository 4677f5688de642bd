import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { bundleAssets, PAGE_ASSETS } from "./assets.ts";

/** The most bytes that a browser loads, if a server compresses them. */
const MOST_PAGE_BYTES = 90_000;

Deno.test("every asset equals the bundle of its source", async () => {
  for (const [asset, text] of await bundleAssets()) {
    const shipped = await Deno.readTextFile(new URL(`../${asset}`, import.meta.url));
    assert.equal(shipped, text, `Run \`deno task assets\`: ${asset} is old`);
  }
});

Deno.test("the page has at most 90 KB compressed, and no text that its policy refuses", async () => {
  let bytes = 0;
  for (const asset of PAGE_ASSETS) {
    const text = await Deno.readTextFile(new URL(`../${asset}`, import.meta.url));
    bytes += gzipSync(text).length;
    assert.doesNotMatch(text, /\b(?:eval|Function)\(|@import|url\(["']?http/, asset);
    if (asset.endsWith(".html")) {
      assert.doesNotMatch(text, /<script>|<style|\sstyle=|\son[a-z]+=/, asset);
    }
  }
  console.log(`the page has ${bytes} bytes compressed`);
  assert.ok(bytes <= MOST_PAGE_BYTES, String(bytes));
});

Deno.test("no program of PML imports the package of the page", async () => {
  const config = JSON.parse(await Deno.readTextFile(new URL("../page/deno.json", import.meta.url)));
  const names = Object.keys(config.imports);
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", new URL("../mod.ts", import.meta.url).href],
  }).output();
  const text = new TextDecoder().decode(stdout);
  assert.ok(text.includes("src/cli/cli.ts"));
  for (const name of names) assert.ok(!text.includes(`npm:/${name}@`), name);
  assert.ok(!/\/page\/[a-z_]+\.tsx"/.test(text));
});
