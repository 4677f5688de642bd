/**
 * `deno task conformance`: runs the public conformance suite against PML: its server scenarios in
 * all cells, and its client scenarios. Prints what passed, and everything that is not as expected.
 *
 *     deno task conformance [--write]
 *
 * @module
 */

import { CLIENT_SCENARIOS, runClientScenario } from "./clients.ts";
import { differences, isPassed, unexpectedOfClients } from "./expected.ts";
import { pageOf, type Row } from "./page.ts";
import { type Behind, CELLS, type Checked, REVISIONS, runServerSuite } from "./suite.ts";

const PAGE = new URL("../../docs/conformance.md", import.meta.url);

let wrong = 0;

function rowOf(
  name: string,
  { checks, told }: { readonly checks: readonly Checked[]; readonly told: readonly string[] },
): Row {
  const row = { name, passed: checks.filter(isPassed).length, all: checks.length };
  console.log(`${name}: ${row.passed} of ${row.all} checks passed`);
  for (const line of told) console.log(`  NOT AS EXPECTED ${line.slice(0, 400)}`);
  wrong += told.length + (checks.length === 0 ? 1 : 0);
  return row;
}

async function rowOfCell(revision: string, behind: Behind): Promise<Row> {
  const { kind, over } = behind;
  const checks = await runServerSuite(revision, behind);
  const name = `${revision}, ${kind === "modern" ? "2026-07-28" : "2025-11-25"} over ${over}`;
  return rowOf(name, { checks, told: differences(checks, { revision, kind }) });
}

async function rowOfClient(revision: string, scenario: string): Promise<Row> {
  const checks = await runClientScenario(revision, scenario);
  const told = unexpectedOfClients(checks).map((one) => JSON.stringify(one));
  return rowOf(`${revision} ${scenario}`, { checks, told });
}

const cells: Row[] = [];
for (const revision of REVISIONS) {
  for (const behind of CELLS) cells.push(await rowOfCell(revision, behind));
}
const scenarios: Row[] = [];
for (const [revision, names] of Object.entries(CLIENT_SCENARIOS)) {
  for (const name of names) scenarios.push(await rowOfClient(revision, name));
}
console.log(wrong === 0 ? "Everything is as expected" : `${wrong} are not as expected`);
if (wrong === 0 && Deno.args.includes("--write")) {
  await Deno.writeTextFile(PAGE, pageOf({ cells, scenarios }));
}
Deno.exitCode = wrong === 0 ? 0 : 1;
