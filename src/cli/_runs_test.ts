import assert from "node:assert/strict";
import { COMMANDS } from "./_commands.ts";
import { RUNS } from "./_runs.ts";

Deno.test("each command of the help has a function, and there are no others", () => {
  const rows = Object.values(COMMANDS).flat();
  const named = rows.map(({ usage }) => usage.split(" ", 1)[0]);
  assert.deepEqual(["", ...named].toSorted(), Object.keys(RUNS).toSorted());
});

Deno.test("the help of a command lists the first words that completions offer", () => {
  for (const { usage, does, words } of Object.values(COMMANDS).flat()) {
    const [, list] = /^\S+ [<[]what[>\]].*: ([^:]+)$/.exec(`${usage}: ${does}`) ?? [];
    if (list === undefined && words === undefined) continue;
    const named = `${usage} ${list ?? does}`;
    for (const word of words ?? []) assert.match(named, new RegExp(`\\b${word}\\b`), usage);
    if (!does.includes(": ")) continue;
    assert.deepEqual(list?.split(", ").map((one) => one.split(" ", 1)[0]), words, usage);
  }
});
