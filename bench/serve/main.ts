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
import { Load, type Loaded, type Target } from "./load.ts";
import { optionsOf } from "./options.ts";
import { startServers } from "./servers.ts";

const WARM_UP = { connections: 16, calls: 2_000 };
/** The name of the SDK's own server. */
const BASELINE = "sdk";

interface Cell {
  readonly target: Target;
  readonly connections: number;
  readonly rounds: readonly Loaded[];
}

const options = optionsOf(Deno.args);
if (typeof options === "string") {
  console.error(options);
  process.exit(2);
}
const { peers, project, rounds, seconds, connections: numbers, only, json } = options;

// The servers start in a separate folder.
await using servers = await startServers({ peers, project });
const targets = servers.targets.filter(({ name }) => only.test(name));
if (targets.length === 0) {
  throw new Error(`None is called ${only}: ${servers.targets.map(({ name }) => name).join("; ")}`);
}
const found = new Map<string, { target: Target; connections: number; rounds: Loaded[] }>();
for (let round = 0; round < rounds; round++) {
  for (const target of targets) {
    await using load = await Load.open(target);
    await load.run(WARM_UP);
    for (const connections of numbers) {
      const key = `${target.name} ${connections}`;
      const cell = found.get(key) ?? { target, connections, rounds: [] };
      found.set(key, cell);
      cell.rounds.push(await load.run({ connections, ms: seconds * 1_000 }));
    }
  }
}
const cells = [...found.values()];
if (json) console.log(JSON.stringify(cells.map(figures)));
else console.log(table(cells));

function middle({ rounds }: Cell, of: "perSecond" | "p50" | "p99"): number {
  return median(rounds.map((one) => one[of]));
}

/** The figures of a cell. Ratios are of the SDK's server in the same era; above 1 is slower. */
function figures(cell: Cell) {
  const { target, connections } = cell;
  const baseline = cells.find((one) =>
    one.target.name.startsWith(`${BASELINE},`) && one.connections === connections &&
    (one.target.how === "alone") === (target.how === "alone")
  );
  const ratio = (of: "perSecond" | "p50" | "p99") =>
    baseline === undefined ? NaN : middle(cell, of) / middle(baseline, of);
  return {
    name: target.name,
    connections,
    p50: middle(cell, "p50"),
    p99: middle(cell, "p99"),
    perSecond: middle(cell, "perSecond"),
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
