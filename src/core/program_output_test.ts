import assert from "node:assert/strict";
import { causeIn, putErrorFirst } from "./program_output.ts";

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
  assert.equal(causeIn(node), ": \"Error: Cannot find module 'x.mjs'\"");
  assert.equal(
    causeIn('a.mjs:3\nthrow new Error("no: token");\n\nError: no: token\n    at a.mjs:3:7\n'),
    ': "Error: no: token"',
  );
  assert.equal(
    causeIn("Traceback (most recent call last):\n  File \"s.py\"\nKeyError: 'TOKEN'\n"),
    ": \"KeyError: 'TOKEN'\"",
  );
  assert.equal(causeIn("fatal: no repository\nbye\n"), ': "fatal: no repository"');
});

Deno.test("causeIn() returns the last line where none names an error", () => {
  assert.equal(causeIn("starting\ndocker has no daemon\n"), ': "docker has no daemon"');
  assert.equal(causeIn("listening, 0 errors\ngoodbye\n"), ': "goodbye"');
  assert.equal(causeIn("\n"), "");
});

Deno.test("causeIn() takes a marked line for an error, also without a colon", () => {
  assert.equal(
    causeIn("ready\n\u001b[31m[ERROR]\u001b[0m no token\nbye\n"),
    ': "[ERROR] no token"',
  );
  assert.equal(
    causeIn("2026-01-31T12:00:00Z ERROR no token\nbye\n"),
    ': "2026-01-31T12:00:00Z ERROR no token"',
  );
  assert.equal(causeIn("npm error code E404\nnpm error 404 Not Found\n"), ': "404 Not Found"');
});

Deno.test("putErrorFirst() begins with the first error, and puts earlier lines last", () => {
  const text =
    "\u001b[32mloading\u001b[39m\nsecond line\n\u001b[1mError: no key\u001b[22m\n    at x.js:1\n";
  const whole = "Error: no key\n    at x.js:1\nBefore that:\nloading\nsecond line";
  assert.equal(putErrorFirst(text, 4_000), whole);
  assert.equal(putErrorFirst(text, whole.length - 8), whole.replace("loading\n", ""));
  assert.equal(putErrorFirst(text, 13), "Error: no key");
  assert.equal(putErrorFirst("Error: no key\nbye\n", 4_000), "Error: no key\nbye");
});

Deno.test("putErrorFirst() keeps the end of an output without an error, and shows other control characters", () => {
  assert.equal(putErrorFirst("first\nlast\n", 4), "last");
  assert.equal(putErrorFirst("a\u0007b\rc", 100), "a\\u{7}b\nc");
  assert.equal(putErrorFirst("", 100), "");
});
