/**
 * Tests how a definition names a server's own folder.
 *
 * @module
 */

import assert from "node:assert/strict";
import { withDataFolder } from "./data_folder.ts";

Deno.test("withDataFolder() takes a path as it is, also one with a sign for replacements", () => {
  assert.deepEqual(withDataFolder(["${dataFolder}/x"], () => "/home/a$$b/$&"), ["/home/a$$b/$&/x"]);
});
