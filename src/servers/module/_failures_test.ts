import assert from "node:assert/strict";
import { type ErrorCode, PmlError } from "../../core/errors.ts";
import { toolId } from "../../core/tool_id.ts";
import { withGrant } from "./_failures.ts";

/** Returns the grant in the hint of an error, parsed; undefined if there is none. */
function grantIn(code: ErrorCode, message: string): unknown {
  const error = new PmlError(code, message, { hint: "Ask" });
  const { hint = "" } = withGrant(error, { id: toolId("fs", "read") }) as PmlError;
  const [, grants] = /"grants": (.*)$/.exec(hint) ?? [];
  return grants && JSON.parse(grants);
}

Deno.test("withGrant() names a grant that opens the path, as JSON", () => {
  const isProtected = "PATH_PROTECTED";
  assert.deepEqual(grantIn(isProtected, 'Cannot read ".env": it is protected'), {
    fs: { read: [".env"] },
  });
  assert.deepEqual(grantIn(isProtected, String.raw`Cannot read "a\.env": it is protected`), {
    fs: { read: [String.raw`a\.env`] },
  });
  assert.deepEqual(grantIn(isProtected, 'Cannot write ".git/.1.x.tmp": it is protected'), {
    fs: { write: [".git"] },
  });
  const outside = "PATH_OUTSIDE_WORKSPACE";
  assert.deepEqual(grantIn(outside, 'Cannot look at "../x": it is outside the workspace'), {
    fs: { read: ["../x"] },
  });
  // A link: its target is not known.
  assert.equal(grantIn(outside, 'Cannot look at "x": it is outside the workspace'), undefined);
});

Deno.test("withGrant() names no grant for a name that means another file on Windows", () => {
  const whys = [
    "its name means another file on Windows: it is the name of a device",
    'Windows allows no "?" in the name of a file',
  ];
  for (const why of whys) {
    assert.equal(grantIn("PATH_PROTECTED", `Cannot read "a": ${why}`), undefined, why);
  }
});
