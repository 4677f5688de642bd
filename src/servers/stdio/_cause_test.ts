import assert from "node:assert/strict";
import { causeIn } from "./_cause.ts";

Deno.test("causeIn() returns the first line that names an error", () => {
  const node = [
    "node:internal/modules/cjs/loader:1210",
    "  throw err;",
    "  ^",
    "",
    "\u001b[31mError: Cannot find module 'x.mjs'\u001b[39m",
    "    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)",
    "",
    "Node.js v20.20.2",
  ].join("\n");
  assert.equal(causeIn(node), ": Error: Cannot find module 'x.mjs'");
  assert.equal(
    causeIn('a.mjs:3\nthrow new Error("no: token");\n\nError: no: token\n    at a.mjs:3:7\n'),
    ": Error: no: token",
  );
  assert.equal(
    causeIn("Traceback (most recent call last):\n  File \"s.py\"\nKeyError: 'TOKEN'\n"),
    ": KeyError: 'TOKEN'",
  );
  assert.equal(causeIn("fatal: no repository\nbye\n"), ": fatal: no repository");
});

Deno.test("causeIn() returns the last line where none names an error", () => {
  assert.equal(causeIn("starting\ndocker has no daemon\n"), ": docker has no daemon");
  assert.equal(causeIn("listening, 0 errors\ngoodbye\n"), ": goodbye");
  assert.equal(causeIn("\n"), "");
});
