import assert from "node:assert/strict";
import { asPmlError, withHint } from "./errors.ts";

Deno.test("asPmlError() takes a full disk and its like for no bug, and says what to do", () => {
  const table: readonly (readonly [string, RegExp])[] = [
    ["No space left on device (os error 28), writefile 'x'", /Free some space/],
    ["Disk quota exceeded (os error 122)", /Free some space/],
    ["Read-only file system (os error 30)", /writable/],
    ["Too many open files (os error 24)", /ulimit -n/],
  ];
  for (const [said, hint] of table) {
    const error = asPmlError(new Error(said));
    assert.deepEqual([error.code, error.message], [
      "OVERLOADED",
      `Cannot finish the call: ${said}`,
    ]);
    assert.match(error.hint ?? "", hint);
  }
  assert.equal(asPmlError(new TypeError("x is not a function")).code, "BUG");
});

Deno.test("asPmlError() takes a package that cannot be fetched for a network error with a hint", () => {
  const failed = (message: string) =>
    asPmlError(Object.assign(new TypeError(message), { code: "ERR_MODULE_NOT_FOUND" }));
  const sent = "error sending request for url (https://npm.example/x): client error (Connect)";
  // The messages of Deno 2.9.6.
  const packages = [
    `Failed caching npm package 'x@1.0.0'\n    0: ${sent}\n    1: client error (Connect)`,
    `Failed loading https://npm.example/x for package "x@1.0.0"\n    0: ${sent}`,
  ];
  for (const message of packages) {
    const { code, message: shown, hint } = failed(message);
    assert.deepEqual([code, shown], [
      "UPSTREAM_DOWN",
      `Cannot load the package "x@1.0.0": ${sent}`,
    ]);
    assert.match(hint ?? "", /pml install --offline-ready/);
  }
  const files = [
    `Import 'https://jsr.example/_a.ts' failed.\n    0: ${sent}`,
    'Specifier not found in cache: "https://jsr.example/_a.ts", --cached-only is specified.',
  ];
  for (const message of files) {
    const { code, message: shown, hint } = failed(message);
    assert.equal(code, "UPSTREAM_DOWN");
    assert.match(shown, /^Cannot load the file "https:\/\/jsr\.example\/_a\.ts": /);
    assert.match(hint ?? "", /install PML again/);
  }
  assert.equal(failed('Module not found "file:///a.ts".').code, "BUG");
  assert.equal(asPmlError(new TypeError(packages[0])).code, "BUG");
});

Deno.test("withHint() ends a message with one mark", () => {
  assert.equal(withHint('It is "a"', "Read it"), 'It is "a". Read it');
  assert.equal(withHint('Did you mean "a"?', "Read it"), 'Did you mean "a"? Read it');
  assert.equal(withHint("It ended", undefined), "It ended");
});
