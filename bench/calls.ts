/**
 * What a call through the whole of `pml stdio` costs, beside the bare server: gates, journal,
 * sandbox and back.
 *
 * @module
 */

import { median, pathOf, type Row, Spawned } from "./measure.ts";

const RUNS = 300;
const WARM_UP = 30;

/** Calls `filesystem:read_file` through PML, and a tool of the bare server, one after the other. */
export async function benchCalls(): Promise<readonly Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  await Deno.mkdir(`${folder}/ws/.git`, { recursive: true });
  await Deno.writeTextFile(`${folder}/ws/small.txt`, "hello\n");
  const options = { cwd: `${folder}/ws`, home: `${folder}/home` };
  const bare = await timed("bench/bare_server.ts", {
    ...options,
    args: [],
    call: { name: "echo", arguments: {} },
  });
  const pml = await timed("mod.ts", {
    ...options,
    args: ["stdio"],
    call: {
      name: "call",
      arguments: { tool: "filesystem:read_file", arguments: { path: "small.txt" } },
    },
  });
  await Deno.remove(folder, { recursive: true });
  return [{
    what: "call of read_file through pml stdio, warm",
    value: pml,
    unit: "ms",
    baseline: bare,
    budget: "none yet",
    ok: true,
    runs: RUNS,
  }];
}

async function timed(script: string, options: {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly home: string;
  readonly call: unknown;
}): Promise<number> {
  await using server = new Spawned(pathOf(script), options);
  await server.initialize();
  const times: number[] = [];
  for (let run = 0; run < WARM_UP + RUNS; run++) {
    const since = performance.now();
    await server.request(run + 1, "tools/call", options.call);
    if (run >= WARM_UP) times.push(performance.now() - since);
  }
  return median(times);
}
