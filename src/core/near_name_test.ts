import assert from "node:assert/strict";
import { nearName } from "./near_name.ts";

Deno.test("nearName() finds the nearest known name", () => {
  const names = ["filesystem", "git", "github", "x".repeat(100)];
  assert.equal(nearName("fliesystem", names), "filesystem");
  assert.equal(nearName("gihub", names), "github");
  assert.equal(nearName("Git", names), "git");
  assert.equal(nearName("file", names), "filesystem");
  assert.equal(nearName("fi", names), undefined);
  assert.equal(nearName("postgres", names), undefined);
  assert.equal(nearName("y".repeat(100_000), names), undefined);
  assert.equal(nearName("a", []), undefined);
});
