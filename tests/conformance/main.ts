/**
 * `deno task conformance`: runs the public conformance suite against PML: its server scenarios in
 * all cells, and its client scenarios. Prints what passed, and everything that is not as expected.
 *
 *     deno task conformance [server|client]
 *
 * @module
 */

import { CLIENT_SCENARIOS, runClientScenario } from "./clients.ts";
import { differences, isPassed, unexpectedOfClients } from "./expected.ts";
import { type Behind, CELLS, REVISIONS, runServerSuite } from "./suite.ts";

async function reportCell(revision: string, behind: Behind): Promise<boolean> {
  const checks = await runServerSuite(revision, behind);
  const told = differences(checks, { revision, kind: behind.kind });
  const passed = checks.filter(isPassed).length;
  const cell = `${revision} client, ${behind.kind} server over ${behind.over}`;
  console.log(`${cell}: ${passed} of ${checks.length} checks passed`);
  for (const line of told) console.log(`  NOT AS EXPECTED ${line.slice(0, 400)}`);
  return told.length === 0;
}

async function reportClient(revision: string, scenario: string): Promise<boolean> {
  const checks = await runClientScenario(revision, scenario);
  const bad = unexpectedOfClients(checks);
  const passed = checks.filter(isPassed).length;
  console.log(`${revision} ${scenario}: ${passed} of ${checks.length} checks passed`);
  for (const one of bad) console.log(`  NOT AS EXPECTED ${JSON.stringify(one).slice(0, 400)}`);
  return bad.length === 0 && checks.length > 0;
}

const [only] = Deno.args;
const results: boolean[] = [];
if (only !== "client") {
  for (const revision of REVISIONS) {
    for (const behind of CELLS) results.push(await reportCell(revision, behind));
  }
}
if (only !== "server") {
  for (const [revision, scenarios] of Object.entries(CLIENT_SCENARIOS)) {
    for (const scenario of scenarios) results.push(await reportClient(revision, scenario));
  }
}
console.log(results.every(Boolean) ? "Everything is as expected" : "Not everything is as expected");
Deno.exitCode = results.every(Boolean) ? 0 : 1;
