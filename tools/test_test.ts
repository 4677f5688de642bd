import assert from "node:assert/strict";
import { repoFile } from "../tests/kit/pml_command.ts";
import { allTests, groupsOf } from "./test.ts";

Deno.test("each test file of the project is in exactly one module", async () => {
  const { stdout } = await new Deno.Command("git", {
    args: ["ls-files", "-co", "--exclude-standard", "*_test.ts"],
    cwd: repoFile(""),
  }).output();
  const paths = new TextDecoder().decode(stdout).trim().split("\n").sort();
  assert.ok(paths.length > 500, `${paths.length}`);
  const files = await allTests();
  assert.deepEqual(files.toSorted(), paths);
  assert.deepEqual(groupsOf(files).flat().toSorted(), paths);
});
