import assert from "node:assert/strict";
import { repoFile } from "../tests/kit/pml_command.ts";
import { allTests, groupsOf, ModuleOutput } from "./test.ts";

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

Deno.test("the output of a module has its results, and shows each test at once", () => {
  const lines: string[] = [];
  const output = new ModuleOutput((line) => lines.push(line));
  const tests = ["./a_test.ts => a: one ... ok (1ms)", "./a_test.ts => a: two ... FAILED (1ms)"];
  const details = [" ERRORS ", "", "a: two", "error: no", " FAILURES ", "", "a: two"];
  for (const line of ["", ...tests, "", ...details, ""]) output.add(line);
  assert.equal(output.results, undefined);
  output.add("FAILED | 1 passed (3 steps) | 1 failed (2 steps) | 4 ignored (1m2s)");
  assert.deepEqual(lines, tests);
  assert.deepEqual(output.results, {
    ...{ passed: 1, steps: 5, failed: 1, ignored: 4 },
    details: [...details, ""].join("\n"),
  });
});

Deno.test("the results of a module are read with the colours of a terminal", () => {
  const output = new ModuleOutput(() => {});
  for (const line of ["\x1b[31m ERRORS \x1b[0m", "a: two"]) output.add(line);
  output.add("\x1b[32mok\x1b[0m | 2 passed | 0 failed \x1b[90m(1s)\x1b[0m");
  const details = "\x1b[31m ERRORS \x1b[0m\na: two";
  assert.deepEqual(output.results, { passed: 2, steps: 0, failed: 0, ignored: 0, details });
});
