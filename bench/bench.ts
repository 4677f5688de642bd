/**
 * `deno task bench`: measures all figures that have a budget, and some without a budget. Most figures
 * have a baseline in the same run. Fails if a figure misses its budget by more than a quarter.
 * `--json` prints one line of JSON instead of a table.
 *
 * @module
 */

import { committedSizes, sizeOf, TOLERANCE } from "../tools/size.ts";
import { benchAtOnce, benchCalls } from "./calls.ts";
import { benchCode } from "./code.ts";
import { benchFirstAnswer, emptyRun } from "./first_answer.ts";
import { benchGateway } from "./gateway.ts";
import { benchHttp } from "./http.ts";
import { type Budget, median, pathOf, type Row, verdictOf } from "./measure.ts";
import { benchPlans } from "./plans.ts";
import { benchRegistry } from "./registry.ts";
import { benchSandbox } from "./sandbox.ts";
import { benchSignedIn } from "./signed_in.ts";

if (import.meta.main) {
  const rows = [
    ...await benchFirstAnswer(),
    ...await benchGateway(),
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
  Deno.exitCode = rows.some((row) => verdictOf(row) === "missed") ? 1 : 0;
}

async function sandboxRows(): Promise<readonly Row[]> {
  const figures = await benchSandbox();
  const { runs } = figures;
  const empty = await emptyMs(runs.cold);
  const row = (what: string, values: Omit<Row, "what" | "unit">): Row => ({
    what: `sandboxed read${what}`,
    unit: "ms",
    ...values,
  });
  const ratio = (most: number): Budget => ({ of: "ratio", most });
  return [
    row(", warm, over the direct function", {
      value: figures.warm_ms,
      baseline: figures.direct_ms,
      wanted: { of: "difference", most: 0.4 },
      runs: runs.warm,
    }),
    row(", cold, relative to an empty `deno run`", {
      value: figures.cold_start_and_call_ms,
      baseline: empty,
      wanted: ratio(2.5),
      runs: runs.cold,
    }),
    row(", cold with a warm child, relative to an empty `deno run`", {
      value: figures.blank_load_and_call_ms,
      baseline: empty,
      wanted: ratio(0.7),
      runs: runs.cold,
    }),
    row(" of 1 MB, relative to the direct function", {
      value: figures.warm_1mb_ms,
      baseline: figures.direct_1mb_ms,
      wanted: ratio(2),
      runs: runs.large,
    }),
    { what: "memory of a sandbox child", value: figures.child_rss_mb, unit: "MB", runs: 1 },
  ];
}

async function emptyMs(runs: number): Promise<number> {
  const path = await Deno.makeTempFile({ suffix: ".ts" });
  const times: number[] = [];
  for (let run = 0; run < runs; run++) {
    const since = performance.now();
    await emptyRun(path);
    times.push(performance.now() - since);
  }
  await Deno.remove(path);
  return median(times);
}

async function sizeRow(): Promise<Row> {
  const { gzipped } = await sizeOf(pathOf("mod.ts"), pathOf("deno.json"));
  return {
    what: "package, minified and gzipped",
    value: gzipped / 1000,
    unit: "KB",
    wanted: { of: "figure", most: (await committedSizes()).ownCode * (1 + TOLERANCE) / 1000 },
    runs: 1,
  };
}

function table(rows: readonly Row[]): string {
  const cells = rows.map((row) => [
    row.what,
    `${row.value.toFixed(2)} ${row.unit}`,
    row.baseline === undefined ? "-" : `${row.baseline.toFixed(2)} ${row.unit}`,
    row.baseline === undefined ? "-" : `${(row.value / row.baseline).toFixed(2)} ×`,
    wantedText(row),
    verdictOf(row),
    String(row.runs),
  ]);
  const head = ["what", "figure", "baseline", "ratio", "wanted", "kept", "runs"];
  const lines = [head, head.map(() => "---"), ...cells];
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
}

function wantedText({ wanted, unit }: Row): string {
  if (wanted === undefined) return "-";
  const { of, most, least } = wanted;
  const limit = most === undefined ? `≥ ${least}` : `≤ ${most}`;
  return {
    ratio: `${limit} ×`,
    difference: `${limit} ${unit} more`,
    figure: `${limit} ${unit}`,
  }[of];
}
