/**
 * Measures a small call over HTTP: `pml serve`, the SDK's own HTTP server and other gateways, each at
 * several numbers of connections. The servers take turns in each round.
 *
 *     deno task bench:serve [--peers DIR] [--project DIR] [--rounds N] [--seconds N]
 *       [--connections 1,16,64,256] [--only PATTERN] [--json]
 *
 * @module
 */

import process from "node:process";
import { median } from "../measure.ts";
import { Load, type LoadFigures, type Target } from "./load.ts";
import { optionsOf } from "./options.ts";
import { startServers } from "./servers.ts";

const WARM_UP = { connections: 16, calls: 2_000 };
/** The name of the SDK's own server. */
const BASELINE = "sdk";

interface Cell {
  readonly target: Target;
  readonly connections: number;
  readonly rounds: readonly LoadFigures[];
}

const options = optionsOf(Deno.args);
if (typeof options === "string") {
  console.error(options);
  process.exit(2);
}
const { peers, project, rounds, seconds, connections: numbers, only, json } = options;

// Parses options first, because the servers start in a separate folder.
await using servers = await startServers({ peers, project });
const targets = servers.targets.filter(({ name }) => only.test(name));
if (targets.length === 0) {
  throw new Error(
    `No server matches ${only}: ${servers.targets.map(({ name }) => name).join("; ")}`,
  );
}
const cellByKey = new Map<string, { target: Target; connections: number; rounds: LoadFigures[] }>();
for (let round = 0; round < rounds; round++) {
  for (const target of targets) {
    await using load = await Load.open(target);
    await load.run(WARM_UP);
    for (const connections of numbers) {
      const key = `${target.name} ${connections}`;
      const cell = cellByKey.get(key) ?? { target, connections, rounds: [] };
      cellByKey.set(key, cell);
      cell.rounds.push(await load.run({ connections, ms: seconds * 1_000 }));
    }
  }
}
const cells = [...cellByKey.values()];
if (json) console.log(JSON.stringify(cells.map(figures)));
else console.log(table(cells));

function medianOf({ rounds }: Cell, of: "perSecond" | "p50" | "p99"): number {
  return median(rounds.map((round) => round[of]));
}

/** Returns the figures of a cell, with ratios to the SDK's server of the same revision (> 1: slower). */
function figures(cell: Cell) {
  const { target, connections } = cell;
  const baseline = cells.find((candidate) =>
    candidate.target.name.startsWith(`${BASELINE},`) && candidate.connections === connections &&
    (candidate.target.how === "alone") === (target.how === "alone")
  );
  const ratio = (of: "perSecond" | "p50" | "p99") =>
    baseline === undefined ? NaN : medianOf(cell, of) / medianOf(baseline, of);
  return {
    name: target.name,
    connections,
    p50: medianOf(cell, "p50"),
    p99: medianOf(cell, "p99"),
    perSecond: medianOf(cell, "perSecond"),
    p50Ratio: ratio("p50"),
    p99Ratio: ratio("p99"),
    rateRatio: 1 / ratio("perSecond"),
  };
}

function table(all: readonly Cell[]): string {
  const ratio = (value: number) => Number.isNaN(value) ? "-" : `${value.toFixed(2)} ×`;
  const rows = all.map(figures).map((row) => [
    row.name,
    `${row.connections}`,
    `${row.p50.toFixed(2)}`,
    ratio(row.p50Ratio),
    `${row.p99.toFixed(2)}`,
    ratio(row.p99Ratio),
    row.perSecond.toFixed(0),
    ratio(row.rateRatio),
  ]);
  const head = [
    "server",
    "connections",
    "p50 ms",
    "",
    "p99 ms",
    "",
    "calls a second",
    "time a call",
  ];
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}
