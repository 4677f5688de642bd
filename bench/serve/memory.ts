/**
 * Whether the memory of `pml serve` stays flat over many requests of both eras.
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
/** How much is sent before the memory counts, and between two looks at it. */
const [WARM_UP, STEP] = [20_000, 2_000];
const LOOKS = 5;

/** The measured memory. */
export interface Memory {
  readonly requests: number;
  /** The median of the first and of the last looks, in bytes. */
  readonly before: number;
  readonly after: number;
  /** How much more that is, as a part of one. */
  readonly grown: number;
}

/** Sends requests, and looks at the memory meanwhile. */
export async function memoryOver(
  requests: number,
  { warmUp = WARM_UP, step = STEP } = {},
): Promise<Memory> {
  await using servers = await startServers({ only: "pml" });
  const loads = await Promise.all(servers.targets.map((target) => Load.open(target)));
  const seen: number[] = [];
  const send = async (calls: number) => {
    for (const load of loads) {
      await load.run({ connections: CONNECTIONS, calls: calls / loads.length });
    }
  };
  await send(warmUp);
  for (let sent = 0; sent < requests; sent += step) {
    await send(step);
    seen.push(await rssOf(servers.pml));
  }
  for (const load of loads) await load[Symbol.asyncDispose]();
  const [before, after] = [median(seen.slice(0, LOOKS)), median(seen.slice(-LOOKS))];
  return { requests, before, after, grown: after / before - 1 };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { requests: { type: "string", default: "100000" }, json: { type: "boolean" } },
  });
  const { requests, before, after, grown } = await memoryOver(Number(values.requests));
  const mb = (bytes: number) => (bytes / 1e6).toFixed(1);
  if (values.json) console.log(JSON.stringify({ requests, before, after, grown }));
  else {
    console.log(
      `${requests} requests: ${mb(before)} MB, then ${mb(after)} (${(grown * 100).toFixed(1)}%)`,
    );
  }
}
