/**
 * `deno task bench`: every figure that has a budget, beside its baseline of the same run. `--json`
 * prints one line of JSON instead of a table.
 *
 * @module
 */

import { BUDGET, sizeOf } from "../tools/size.ts";
import { benchAtOnce, benchCalls } from "./calls.ts";
import { benchCode } from "./code.ts";
import { benchFirstAnswer } from "./first_answer.ts";
import { benchHttp } from "./http.ts";
import { pathOf, type Row } from "./measure.ts";
import { benchPlans } from "./plans.ts";
import { benchRegistry } from "./registry.ts";
import { benchSandbox } from "./sandbox.ts";
import { benchSignedIn } from "./signed_in.ts";

const WARM_BUDGET_MS = 1;
const COLD_BUDGET_MS = 50;
const LARGE_BUDGET = 3;

if (import.meta.main) {
  const rows = [
    ...await benchFirstAnswer(),
    ...await sandboxRows(),
    ...await benchCalls(),
    ...await benchAtOnce(),
    ...await benchCode(),
    ...await benchPlans(),
    ...await benchHttp(),
    ...await benchSignedIn(),
    ...await benchRegistry(),
    await sizeRow(),
  ];
  if (Deno.args.includes("--json")) console.log(JSON.stringify(rows));
  else console.log(table(rows));
}

async function sandboxRows(): Promise<readonly Row[]> {
  const figures = await benchSandbox();
  const row = (what: string, values: Omit<Row, "what" | "unit">): Row => ({
    what,
    unit: "ms",
    ...values,
  });
  return [
    row("sandboxed read, warm", {
      value: figures.warm_ms,
      baseline: figures.direct_ms,
      budget: `≤ ${WARM_BUDGET_MS} ms over the direct function`,
      ok: figures.warm_over_direct_ms <= WARM_BUDGET_MS,
      runs: figures.runs.warm,
    }),
    row("sandboxed read, cold", {
      value: figures.cold_start_and_call_ms,
      baseline: figures.direct_ms,
      budget: `≤ ${COLD_BUDGET_MS} ms`,
      ok: figures.cold_start_and_call_ms <= COLD_BUDGET_MS,
      runs: figures.runs.cold,
    }),
    row("sandboxed read, cold, with a blank child kept", {
      value: figures.blank_load_and_call_ms,
      baseline: figures.direct_ms,
      budget: `≤ ${COLD_BUDGET_MS} ms`,
      ok: figures.blank_load_and_call_ms <= COLD_BUDGET_MS,
      runs: figures.runs.cold,
    }),
    row("sandboxed read of 1 MB, warm", {
      value: figures.warm_1mb_ms,
      baseline: figures.direct_1mb_ms,
      budget: `≤ ${LARGE_BUDGET} × the direct function`,
      ok: figures.warm_1mb_ms <= LARGE_BUDGET * figures.direct_1mb_ms,
      runs: figures.runs.large,
    }),
    {
      ...row("memory of a sandbox child", {
        value: figures.child_rss_mb,
        budget: "none yet",
        ok: true,
        runs: 1,
      }),
      unit: "MB",
    },
  ];
}

async function sizeRow(): Promise<Row> {
  const { gzipped } = await sizeOf(pathOf("mod.ts"), pathOf("deno.json"));
  return {
    what: "package, minified and gzipped",
    value: gzipped / 1000,
    unit: "KB",
    budget: `< ${BUDGET / 1000} KB`,
    ok: gzipped < BUDGET,
    runs: 1,
  };
}

function table(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.what,
    `${row.value.toFixed(2)} ${row.unit}`,
    row.baseline === undefined ? "-" : `${row.baseline.toFixed(2)} ${row.unit}`,
    row.baseline === undefined ? "-" : `${(row.value / row.baseline).toFixed(2)} ×`,
    row.budget,
    row.ok ? "yes" : "NO",
    String(row.runs),
  ]);
  const head = ["what", "figure", "baseline", "ratio", "budget", "kept", "runs"];
  const lines = [head, head.map(() => "---"), ...cells];
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
}
