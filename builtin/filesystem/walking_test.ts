import assert from "node:assert/strict";
import { fileUri, toSlashes } from "./walking.ts";

Deno.test("fileUri() returns the URI of a path with or without a drive", () => {
  assert.equal(fileUri("/ws/a b#.bin"), "file:///ws/a%20b%23.bin");
  assert.equal(fileUri("C:/ws/ä.bin"), "file:///C:/ws/%C3%A4.bin");
});

Deno.test("slashed() changes backslashes on Windows only", () => {
  assert.equal(toSlashes("src\\*.ts", "windows"), "src/*.ts");
  assert.equal(toSlashes("a\\b", "linux"), "a\\b");
});
