import assert from "node:assert/strict";
import { runScenarios, scenariosOf } from "./auth.ts";

// Those of 2025-11-25 are a subset of the newest ones, in the older revision: the task runs them,
// too.
for (const revision of ["2025-03-26", "2026-07-28"]) {
  Deno.test(`the conformance suite's client scenarios about sign-in pass, of ${revision}`, async () => {
    const scenarios = await scenariosOf(revision);
    assert.ok(scenarios.length > 1, `${scenarios}`);
    const scored = await runScenarios(revision, scenarios);
    const failed = scored.filter(({ isPassed }) => !isPassed)
      .map(({ scenario, told, said }) => [scenario, ...told, said].join("\n"));
    assert.deepEqual(failed, []);
  });
}
