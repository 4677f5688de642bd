import assert from "node:assert/strict";
import { wrongNames } from "./argument_names.ts";

Deno.test("wrongNames() finds missing names, and unknown ones where a schema is closed", () => {
  const schema = { required: ["path"], properties: { path: {}, head: {} } };
  const closed = { ...schema, additionalProperties: false };
  assert.equal(wrongNames(schema, { path: "a", other: 1 }), undefined);
  assert.equal(wrongNames(closed, { path: "a", head: 1 }), undefined);
  assert.equal(wrongNames(schema, { head: 1 }), "Missing argument: path");
  assert.equal(wrongNames(closed, { path: "a", other: 1 }), '"other" is unknown');
  assert.equal(
    wrongNames({ ...closed, patternProperties: { o: {} } }, { path: 1, other: 1 }),
    undefined,
  );
  assert.equal(wrongNames({ required: ["constructor"] }, {}), "Missing argument: constructor");
});
