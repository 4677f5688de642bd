import assert from "node:assert/strict";
import { isInside, realPathIfAny } from "./place.ts";

Deno.test("isInside() goes by whole names", () => {
  for (const path of ["/ws", "/ws/a", "/ws/..a", "/ws/...", "/ws/a/../b", "/ws/."]) {
    assert.ok(isInside("/ws", path), path);
  }
  for (const path of ["/", "/ws-evil", "/w", "/ws/..", "/ws/../b", "/other"]) {
    assert.ok(!isInside("/ws", path), path);
  }
});

Deno.test("realPathIfAny() gives nothing for what is not there", async () => {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  await Deno.symlink(folder, `${folder}/link`);
  assert.equal(realPathIfAny(`${folder}/link`), folder);
  assert.equal(realPathIfAny(`${folder}/none`), undefined);
  await Deno.remove(folder, { recursive: true });
});
