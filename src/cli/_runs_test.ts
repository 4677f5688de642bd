import assert from "node:assert/strict";
import { COMMANDS } from "./_commands.ts";
import { RUNS } from "./_runs.ts";

Deno.test("Each command of the help has what runs it, and nothing else runs", () => {
  const rows = Object.values(COMMANDS).flat();
  const named = rows.map(({ usage }) => usage.split(" ", 1)[0]);
  assert.deepEqual(["", ...named].toSorted(), Object.keys(RUNS).toSorted());
});
