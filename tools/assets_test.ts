import assert from "node:assert/strict";
import { ASSETS, bundled } from "./assets.ts";

Deno.test("every asset equals the bundle of its source", async () => {
  for (const [asset, source] of Object.entries(ASSETS)) {
    const shipped = await Deno.readTextFile(new URL(`../${asset}`, import.meta.url));
    assert.equal(shipped, await bundled(source), `Run \`deno task assets\`: ${asset} is old`);
  }
});
