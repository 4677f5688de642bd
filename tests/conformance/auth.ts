/**
 * `deno task conformance:auth`: runs the client scenarios about sign-in of MCP's conformance suite
 * against PML, and prints the results.
 *
 *     deno task conformance:auth [SCENARIO...]
 *
 * @module
 */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { signInClient } from "./client.ts";
import { forwarding } from "./forwarding.ts";

const SUITE = "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12";
/** The suite's names of the revisions, and of the scenarios that no set requires. */
const REVISIONS: Readonly<Record<string, readonly string[]>> = {
  "2025-03-26": [
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
  ],
  "2025-11-25": [],
  "2026-07-28": [],
};
/** The scenarios whose server has a fault, so that PML refuses the sign-in or the call. */
const REFUSED: ReadonlySet<string> = new Set([
  "auth/scope-retry-limit",
  "auth/resource-mismatch",
  "auth/iss-supported-missing",
  "auth/iss-wrong-issuer",
  "auth/iss-unexpected",
  "auth/iss-normalized",
  "auth/metadata-issuer-mismatch",
]);
/** How long a client may take, in milliseconds: it also waits for the clients before it. */
const CLIENT_MS = 300_000;
const CHECKS = /^auth\/[^/]+\/checks\.json$/;

/** The result of one scenario. */
export interface Scored {
  readonly revision: string;
  readonly scenario: string;
  readonly isPassed: boolean;
  /** The checks that failed or warned, a line each. */
  readonly told: readonly string[];
  /** The output of the client, for failures. */
  readonly said: string;
}

interface Check {
  readonly id: string;
  readonly status: string;
  readonly description: string;
}

/** Returns the scenarios about sign-in that a revision requires. */
export async function scenariosOf(revision: string): Promise<readonly string[]> {
  const more = REVISIONS[revision] ?? [];
  if (more.length > 0) return more;
  const listed = (await suite(["list", "--requirements", revision])).split("\n");
  // Scenarios that are never scored are listed below.
  const end = listed.findIndex((line) => line.startsWith("Run and reported"));
  return listed.slice(0, end < 0 ? undefined : end).flatMap((line) =>
    /^ *- (auth\/\S+)/.exec(line)?.[1] ?? []
  );
}

/** Runs scenarios: all of a revision in one process of the suite, others one by one. */
export async function runScenarios(
  revision: string,
  scenarios: readonly string[],
): Promise<readonly Scored[]> {
  const folder = await Deno.makeTempDir({ prefix: "pml-conformance-" });
  try {
    await using clients = await forwarding(
      folder,
      // The suite also starts clients for the other scenarios of the revision.
      (client) => client.scenario.startsWith("auth/") ? signInClient(client) : Promise.resolve(1),
    );
    const run = (...what: readonly string[]) =>
      suite([
        ...["client", "--command", clients.command, ...what],
        ...["--timeout", `${CLIENT_MS}`, "-o", folder],
      ]);
    const isAll = REVISIONS[revision]?.length === 0 && scenarios.length > 1;
    let printed = isAll ? await run("--requirements", revision) : "";
    for (const each of isAll ? [] : scenarios) {
      printed += await run("--scenario", each, "--spec-version", revision);
    }
    const files = await readdir(folder, { recursive: true });
    return await Promise.all(scenarios.map(async (scenario) => {
      const file = files.find((name) => name.startsWith(`${scenario}-2`) && CHECKS.test(name));
      const text = file === undefined ? "[]" : await readFile(join(folder, file), "utf8");
      const checks = JSON.parse(text) as readonly Check[];
      const messages = checks.filter(({ status }) => status === "FAILURE" || status === "WARNING")
        .map(({ id, status, description }) => `${status} ${id}: ${description}`);
      const end = clients.ends.get(scenario);
      const hasEnded = end?.code === (REFUSED.has(scenario) ? 1 : 0);
      const isPassed = checks.length > 0 && messages.length === 0 && hasEnded;
      return {
        ...{ revision, scenario, isPassed, told: messages },
        said: isPassed ? "" : `${end?.code} ${end?.output ?? printed}`,
      };
    }));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Runs the suite, and returns its output. */
async function suite(args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "--no-lock", "--no-config", SUITE, ...args],
    env: { NO_COLOR: "1" },
    stdin: "null",
  }).output();
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}

/** Runs the scenarios of a revision, and prints their results. Returns how many failed. */
async function tell(revision: string, only: readonly string[]): Promise<number> {
  const all = await scenariosOf(revision);
  const chosen = all.filter((name) => only.length === 0 || only.includes(name));
  const since = performance.now();
  const scored = await runScenarios(revision, chosen);
  for (const { scenario, isPassed, told, said } of scored) {
    console.log(`${isPassed ? "pass" : "FAIL"} ${revision} ${scenario}`);
    for (const line of told) console.log(`     ${line}`);
    if (only.length > 0) console.log(said);
  }
  const s = ((performance.now() - since) / 1_000).toFixed(1);
  console.log(`${revision}: ${chosen.length} scenarios in ${s} s`);
  return scored.filter(({ isPassed }) => !isPassed).length;
}

if (import.meta.main) {
  let failed = 0;
  for (const revision of Object.keys(REVISIONS)) failed += await tell(revision, Deno.args);
  Deno.exitCode = failed === 0 ? 0 : 1;
}
