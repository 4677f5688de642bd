import assert from "node:assert/strict";
import { COMMANDS } from "./_commands.ts";
import { RUNS } from "./_runs.ts";

Deno.test("each command of the help has a function, and there are no others", () => {
  const rows = Object.values(COMMANDS).flat();
  const named = rows.map(({ usage }) => usage.split(" ", 1)[0]);
  assert.deepEqual(["", ...named].toSorted(), Object.keys(RUNS).toSorted());
});
