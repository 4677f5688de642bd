import assert from "node:assert/strict";
import { ASSETS, bundled } from "./assets.ts";

Deno.test("every asset is what its source gives now", async () => {
  for (const [asset, source] of Object.entries(ASSETS)) {
    const shipped = await Deno.readTextFile(new URL(`../${asset}`, import.meta.url));
    assert.equal(shipped, await bundled(source), `Run \`deno task assets\`: ${asset} is old`);
  }
});
