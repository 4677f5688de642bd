/**
 * Measures whether the memory of `pml serve` grows over many requests of both revisions.
 *
 *     deno run -A bench/serve/memory.ts [--requests 100000] [--json]
 *
 * @module
 */

import { parseArgs } from "node:util";
import { rssOf } from "../../tests/kit/procwatch.ts";
import { median } from "../measure.ts";
import { Load } from "./load.ts";
import { startServers } from "./servers.ts";

const CONNECTIONS = 16;
/** The number of requests before the first sample of the memory, and between two samples. */
const [WARM_UP, STEP] = [20_000, 2_000];
const SAMPLES = 5;

/** The measured memory. */
export interface Memory {
  readonly requests: number;
  /** The medians of the first and of the last samples, in bytes. */
  readonly before: number;
  readonly after: number;
  /** The relative growth: 0.1 means 10% more. */
  readonly grown: number;
}

/** Sends requests, and samples the memory of the server. */
export async function measureMemory(
  requests: number,
  { warmUp = WARM_UP, step = STEP } = {},
): Promise<Memory> {
  await using servers = await startServers({ only: "pml" });
  const loads = await Promise.all(servers.targets.map((target) => Load.open(target)));
  const samples: number[] = [];
  const send = async (calls: number) => {
    for (const load of loads) {
      await load.run({ connections: CONNECTIONS, calls: calls / loads.length });
    }
  };
  await send(warmUp);
  for (let sent = 0; sent < requests; sent += step) {
    await send(step);
    samples.push(await rssOf(servers.pml));
  }
  for (const load of loads) await load[Symbol.asyncDispose]();
  const [before, after] = [median(samples.slice(0, SAMPLES)), median(samples.slice(-SAMPLES))];
  return { requests, before, after, grown: after / before - 1 };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { requests: { type: "string", default: "100000" }, json: { type: "boolean" } },
  });
  const { requests, before, after, grown } = await measureMemory(Number(values.requests));
  const mb = (bytes: number) => (bytes / 1e6).toFixed(1);
  if (values.json) console.log(JSON.stringify({ requests, before, after, grown }));
  else {
    console.log(
      `${requests} requests: ${mb(before)} MB, then ${mb(after)} (${(grown * 100).toFixed(1)}%)`,
    );
  }
}
