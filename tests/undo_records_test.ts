/**
 * Damaged or forged records of PML's changes to clients' files: they undo nothing.
 *
 * @module
 */

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { sha256 } from "../src/core/hash.ts";
import { assertError } from "./cli_greeter.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

Deno.test("pml init --undo uses no damaged record, and no record of another file", async () => {
  await using ws = await makeWorkspace({ files: { ".cursor/mcp.json": "{}\n" } });
  await runPml(ws, ["init", "--client", "cursor", "--yes"]);
  const [{ name = "" } = {}] = [...Deno.readDirSync(join(ws.home, "imports"))];
  const record = join(ws.home, "imports", name);
  const whole = await Deno.readTextFile(record);
  const [first] = JSON.parse(whole);
  const path = ws.file(".cursor/mcp.json");
  const text = await Deno.readTextFile(path);
  const backup = join(dirname(ws.outside), "canary.txt");
  const before = sha256(ws.canary);
  const records = [
    ...["", "{", "null", "{}", "[1]", "[{}]", whole.slice(0, -5)],
    ...[{ backup, before }, { backup, before: null }, { backup: `${path}.backup`, before: null }]
      .map((more) => JSON.stringify([{ ...first, ...more }])),
  ];
  for (const damaged of records) {
    await Deno.writeTextFile(record, damaged);
    const result = await runPml(ws, ["init", "--undo", "--yes"]);
    assertError(result, { code: "CONFIG_INVALID", exit: 2 });
    assert.match(
      result.stderr,
      /not a record .*mcp\.json|not the file/,
      damaged,
    );
    assert.equal(await Deno.readTextFile(path), text, damaged);
    await ws.assertCanaries();
  }
  await Deno.writeTextFile(record, whole);
  const two = await Promise.all([1, 2].map(() => runPml(ws, ["init", "--undo", "--yes"])));
  assert.deepEqual(two.map(({ stderr }) => stderr.includes("BUG")), [false, false]);
  assert.ok(two.some(({ code }) => code === 0), two.map(({ stderr }) => stderr).join("\n"));
});
