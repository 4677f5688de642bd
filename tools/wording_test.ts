import assert from "node:assert/strict";
import plugin from "./lint.ts";
import { longestRun } from "./lint/wording.ts";

/** Returns the number of lines of a test that the rule reports. */
function reported(source: string, file = "tests/a_test.ts"): number {
  const reports = Deno.lint.runPlugin(plugin, file, source);
  return reports.filter(({ id }) => id === "pml/wording").length;
}

/** Asserts that the rule reports each of these lines. */
function assertReported(lines: readonly string[]): void {
  for (const line of lines) assert.equal(reported(line), 1, line);
}

Deno.test("wording forbids sentences of messages in assertions", () => {
  const sentence = "the server has not answered yet";
  assertReported([
    `assert.match(text, /${sentence}/);`,
    `assert.equal(text, "error: ${sentence}");`,
    `assert.deepEqual(found, [{ name: "a", why: "${sentence}" }]);`,
    `assert.ok(text.includes("${sentence}"));`,
    `assert.match(text, new RegExp(\`\${name}: ${sentence}\`));`,
    `await assert.rejects(work, { code: "TIMED_OUT", message: "${sentence}" });`,
    `assertRefused(answer, /${sentence}/);`,
    `const table = [["a", /${sentence}/]];`,
    `await until(() => /${sentence}/.test(stderr));`,
  ]);
  assert.equal(reported(`assert.match(text, /${sentence}/);`, "src/core/a_test.ts"), 1);
  assert.equal(reported(`assert.match(text, /${sentence}/);`, "src/core/a.ts"), 0);
});

Deno.test("wording accepts values, input, golden texts and an assertion's own message", () => {
  const sentence = "the server has not answered yet";
  const accepted = [
    `assert.match(text, /^TIMED_OUT: .*"far": .* 10 s$/);`,
    `assert.equal(await search("${sentence}"), 1);`,
    `assert.equal(ran.code, 0, "${sentence}");`,
    `assert.ok(isDone, "${sentence}");`,
    `await assert.rejects(work, "${sentence}");`,
    `assert.fail("${sentence}");`,
    `assertGolden("serve/${sentence}", text);`,
    `const input = "${sentence}";`,
  ];
  for (const line of accepted) assert.equal(reported(line), 0, line);
});

Deno.test("longestRun() counts words that only spaces separate", () => {
  assert.equal(longestRun("it was denied; try again"), 5);
  assert.equal(longestRun('Cannot call "a:b": it was denied'), 3);
  assert.equal(longestRun("one two\nthree four\\nfive"), 2);
  assert.equal(longestRun("2 rows of 10 rows"), 2);
});
