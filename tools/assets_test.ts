import assert from "node:assert/strict";
import { bundledAssets } from "./assets.ts";

Deno.test("every asset equals the bundle of its source", async () => {
  for (const [asset, text] of await bundledAssets()) {
    const shipped = await Deno.readTextFile(new URL(`../${asset}`, import.meta.url));
    assert.equal(shipped, text, `Run \`deno task assets\`: ${asset} is old`);
  }
});
