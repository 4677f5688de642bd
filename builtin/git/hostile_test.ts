/**
 * Runs the tools on repositories that try to start programs.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type Name, Yard } from "./_host_test.ts";
import { ground, markers, outside, plant, TRAPS } from "./_trap_test.ts";

async function attempt(yard: Yard, [tool, args]: readonly [Name, object]): Promise<string> {
  try {
    return JSON.stringify(await yard.run(tool, args));
  } catch (error) {
    const { message } = error as Error;
    const why =
      /filter "evil", and none is run|it is a partial clone|nothing (is staged|changed)|CONFLICT \(content\)/;
    assert.match(message, why);
    return message;
  }
}

Deno.test("no tool starts programs that a repository configures for git", async (t) => {
  using base = ground();
  for (const [name, trap] of Object.entries(TRAPS)) {
    await t.step(name, async () => {
      using yard = new Yard(base);
      plant(yard, [trap]);
      const before = outside(yard);
      for (const call of trap.calls) {
        const said = await attempt(yard, call);
        assert.deepEqual(markers(yard), [], `${JSON.stringify(call)}: ${said}`);
      }
      assert.equal(outside(yard), before);
      using other = new Yard(base);
      plant(other, [trap]);
      other.git(trap.plain, ".", { fails: true });
      assert.ok(markers(other).includes(trap.marker), "the test does not bite");
    });
  }
});

Deno.test("commit() keeps git out of submodules if the staged changes are gone", async () => {
  const trap = TRAPS["a submodule's own configuration"];
  assert.ok(trap);
  using yard = ground();
  plant(yard, [trap]);
  yard.put("plain.txt", "staged\n");
  await yard.run("add", { paths: ["plain.txt"] });
  yard.onRun = (args) => void (args.includes("commit") && yard.git(["read-tree", "HEAD"]));
  await yard.run("commit", { message: "x" });
  assert.deepEqual(markers(yard), []);
});
