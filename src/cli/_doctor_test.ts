import assert from "node:assert/strict";
import { denoFinding } from "./_doctor.ts";

Deno.test("denoFinding() takes 2.9.6 and newer", () => {
  for (const version of ["2.9.6", "2.9.7", "2.10.0", "3.0.0", "2.9.6+abc"]) {
    assert.equal(denoFinding(version).ok, true, version);
  }
  for (const version of ["2.9.5", "2.8.99", "1.46.3", "0.0.0", "none"]) {
    const { ok, hint } = denoFinding(version);
    assert.equal(ok, false, version);
    assert.match(hint ?? "", /2\.9\.6/);
  }
});
