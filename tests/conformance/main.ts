/**
 * `deno task conformance`: runs the public conformance suite against PML: its server scenarios in
 * all cells, and its client scenarios. Prints the results, and every unexpected one.
 *
 *     deno task conformance [--write]
 *     deno task conformance --behind URL
 *
 * With `--behind` it compares a server at a URL with the same server behind PML.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { CLIENT_SCENARIOS, runClientScenario } from "./clients.ts";
import { differences, differing, isPassed, unexpectedOfClients } from "./expected.ts";
import { pageOf, type Row } from "./page.ts";
import {
  CELLS,
  type Checked,
  REVISIONS,
  runDirectly,
  runServerSuite,
  runSkillSuite,
} from "./suite.ts";
import type { Kind } from "./words.ts";

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

const SPEAKS = { legacy: "2025-11-25", modern: "2026-07-28", both: "both" } as const;

async function rowOfCell(revision: string, behind: typeof CELLS[number]): Promise<Row> {
  const { kind, over } = behind;
  const checks = await runServerSuite(revision, behind);
  const name = `${revision}, ${SPEAKS[kind]} over ${over}`;
  // Each client connects in its own revision to a server of both.
  const used = kind !== "both" ? kind : revision === "2026-07-28" ? "modern" : "legacy";
  return rowOf(name, { checks, told: differences(checks, { revision, kind: used }) });
}

/** Compares a server at a URL with the same server behind PML. */
async function compare(url: string): Promise<void> {
  for (const revision of REVISIONS) {
    const directly = await runDirectly(revision, url);
    const through = await runServerSuite(revision, { url });
    for (const [how, checks] of [["directly", directly], ["through PML", through]] as const) {
      const succeeded = checks.filter(({ status }) => status === "SUCCESS").length;
      console.log(`${revision} ${how}: ${succeeded} succeeded of ${checks.length} checks`);
    }
    for (const line of differing(directly, through)) console.log(`  ${line.slice(0, 400)}`);
  }
}

const [flag, behind] = Deno.args;
if (flag === "--behind" && behind !== undefined) {
  await compare(behind);
  Deno.exit();
}

async function rowOfClient(revision: string, scenario: string): Promise<Row> {
  const checks = await runClientScenario(revision, scenario);
  const messages = unexpectedOfClients(checks).map((one) => JSON.stringify(one));
  return rowOf(`${revision} ${scenario}`, { checks, told: messages });
}

/** Every check of skills is expected to pass. */
async function rowsOfSkills(kind: Kind): Promise<readonly Row[]> {
  return (await runSkillSuite(kind)).map(({ scenario, checks }) => {
    const failures = checks.filter((one) => !isPassed(one)).map((one) => JSON.stringify(one));
    return rowOf(`${scenario}, ${SPEAKS[kind]}`, { checks, told: failures });
  });
}

const cells: Row[] = [];
for (const revision of REVISIONS) {
  for (const behind of CELLS) cells.push(await rowOfCell(revision, behind));
}
const skills = [...await rowsOfSkills("legacy"), ...await rowsOfSkills("modern")];
const scenarios: Row[] = [];
for (const [revision, names] of Object.entries(CLIENT_SCENARIOS)) {
  for (const name of names) scenarios.push(await rowOfClient(revision, name));
}
console.log(wrong === 0 ? "Everything is as expected" : `${wrong} are not as expected`);
if (wrong === 0 && Deno.args.includes("--write")) {
  await Deno.writeTextFile(PAGE, pageOf({ cells, skills, scenarios }));
  await new Deno.Command(Deno.execPath(), { args: ["fmt", "-q", fileURLToPath(PAGE)] }).output();
}
Deno.exitCode = wrong === 0 ? 0 : 1;
