/**
 * `deno task windows`: tests PML as a Windows program, with Deno and Node for Windows under Wine.
 *
 *     deno task windows                      # everything
 *     deno task windows smoke "pml call"     # these parts
 *     deno task windows --seconds 480        # starts no part after this time
 *
 * The folder of Wine is PML_WINDOWS, or `~/.cache/pml-windows`. The task sets it up if necessary.
 * Exits with 1 if a check failed, and with 3 if Windows programs cannot run on this machine.
 *
 * @module
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { DEMO, NPM_SERVERS, RAW_CLIENTS } from "./windows/clients.ts";
import { APPROVE, CALL, CONSOLE, INIT } from "./windows/commands.ts";
import { PATHS } from "./windows/files.ts";
import { Checks, type Part } from "./windows/part.ts";
import { CannotSetUp, isReady, setUp } from "./windows/setup.ts";
import { SERVE } from "./windows/serve.ts";
import { SMOKE } from "./windows/smoke.ts";
import { FIRST_ANSWER, PARENT } from "./windows/starts.ts";
import { UNIT_TESTS } from "./windows/unit_tests.ts";
import { Wine } from "./windows/wine.ts";

/** The parts, the most important first: with `--seconds`, there may be no time for the last ones. */
const PARTS: readonly Part[] = [
  SMOKE,
  ...RAW_CLIENTS,
  PARENT,
  CALL,
  APPROVE,
  NPM_SERVERS,
  UNIT_TESTS,
  DEMO,
  SERVE,
  CONSOLE,
  INIT,
  FIRST_ANSWER,
  PATHS,
];
const SKIPPED = 3;

if (import.meta.main) Deno.exit(await main());

async function main(): Promise<number> {
  const options = { seconds: { type: "string", default: "3600" } } as const;
  const { values, positionals } = parseArgs({ args: Deno.args, options, allowPositionals: true });
  const parts = positionals.length === 0
    ? PARTS
    : PARTS.filter(({ name }) => positionals.includes(name));
  const folder = Deno.env.get("PML_WINDOWS") ??
    join(Deno.env.get("HOME") ?? "/root", ".cache/pml-windows");
  const end = performance.now() + Number(values.seconds) * 1_000;
  try {
    if (!isReady(folder)) await setUp(folder, { seconds: (end - performance.now()) / 1_000 });
  } catch (error) {
    if (!(error instanceof CannotSetUp)) throw error;
    console.log(`SKIPPED: Windows programs cannot run here: ${error.message}`);
    return SKIPPED;
  }
  await using wine = new Wine(folder);
  // A Wine server of an earlier run would use the checkout of that run.
  await wine.end();
  await Deno.remove(join(wine.drive, "try"), { recursive: true }).catch(() => {}); // it may not exist
  let [passed, failed] = [0, 0];
  for (const part of parts) {
    let checks = await runPart(part, { wine, end });
    // Wine has races that Windows does not have. A fault of PML fails twice.
    if (checks.problems.length > 0 && performance.now() < end) {
      console.log(`     ${part.name} runs again`);
      await wine.end();
      checks = await runPart(part, { wine, end });
    }
    passed += checks.passed;
    failed += checks.problems.length;
  }
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

/** Runs a part, unless no time is left, and prints its result. */
async function runPart(
  { name, run }: Part,
  { wine, end }: { readonly wine: Wine; readonly end: number },
): Promise<Checks> {
  const checks = new Checks();
  const since = performance.now();
  if (since > end) {
    console.log(`skip ${name}: no time is left`);
    return checks;
  }
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = setTimeout(() => resolve("late"), end - since);
  const outcome = await Promise.race([checks.try(name, () => run(wine, checks)), late]);
  clearTimeout(timer);
  const seconds = ((performance.now() - since) / 1_000).toFixed(1);
  const { passed, problems } = checks;
  const count = problems.length === 0 ? `${passed}` : `${passed} of ${passed + problems.length}`;
  const sign = problems.length > 0 ? "FAIL" : outcome === "late" ? "skip" : "ok  ";
  const why = outcome === "late" ? ", then no time was left" : "";
  console.log(`${sign} ${name}: ${count} as expected${why} (${seconds} s)`);
  for (const problem of problems) console.log(`     ${problem}`);
  return checks;
}
