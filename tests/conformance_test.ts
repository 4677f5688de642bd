/**
 * A part of MCP's public conformance suite. `deno task conformance` runs all of it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { CLIENT_SCENARIOS, runClientScenario } from "./conformance/clients.ts";
import { differences, unexpectedOfClients } from "./conformance/expected.ts";
import { REVISIONS, runServerSuite, runSkillSuite } from "./conformance/suite.ts";

/** The least number of checks of each revision, so that missing ones are noticed. */
const LEAST = { "2025-11-25": 85, "2026-07-28": 185 };

for (const revision of REVISIONS) {
  const kind = "modern";
  Deno.test(`the conformance suite's server scenarios of ${revision} pass through PML`, async () => {
    const checks = await runServerSuite(revision, { kind, over: "stdio" });
    assert.deepEqual(differences(checks, { revision, kind }), []);
    assert.ok(checks.length >= LEAST[revision], `${checks.length} checks`);
  });
}

Deno.test("the conformance suite's scenarios of skills pass through PML", async () => {
  const checks = (await runSkillSuite("modern")).flatMap(({ checks }) => checks);
  assert.deepEqual(checks.filter(({ status }) => status !== "SUCCESS"), []);
  assert.ok(checks.length >= 40, `${checks.length} checks`);
});

Deno.test("the conformance suite's client scenarios pass with PML as the client", async () => {
  for (const [revision, scenarios] of Object.entries(CLIENT_SCENARIOS)) {
    // The other scenarios use the same code; the task runs them, too.
    for (const scenario of scenarios.filter((one) => one.startsWith("http-"))) {
      const checks = await runClientScenario(revision, scenario);
      assert.ok(checks.length > 1, scenario);
      assert.deepEqual(unexpectedOfClients(checks), []);
    }
  }
});
