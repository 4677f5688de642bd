/**
 * Measures plans through `pml stdio`: parallel tasks, and a task relative to a call of the same tool.
 *
 * @module
 */

import { median, pathOf, type Row, StdioProcess } from "./measure.ts";

const ROUNDS = 15;
const SIDE_BY_SIDE = 20;
const WAIT_MS = 100;
const CHAIN = 50;

const MODULE = `export const __meta__ = {
  name: "m",
  tools: { wait: { inputSchema: { type: "object" } } },
};
export async function wait({ ms, then }) {
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
  return { then };
}
`;

/**
 * Measures a plan of 20 independent tasks of 100 ms, and a chain of 50 tasks, each of which uses the
 * output of the task before.
 */
export async function benchPlans(): Promise<readonly Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  await Deno.mkdir(`${folder}/ws`);
  await Deno.writeTextFile(`${folder}/ws/m.js`, MODULE);
  await Deno.writeTextFile(
    `${folder}/ws/.pml.json`,
    JSON.stringify({
      version: 1,
      permissions: { allow: ["m:*"] },
      private_mcps: { m: { type: "deno", path: "m.js" } },
    }),
  );
  const options = { args: ["stdio"], cwd: `${folder}/ws`, home: `${folder}/home` };
  let [wide, calls, chain] = [NaN, NaN, NaN];
  {
    await using pml = new StdioProcess(pathOf("mod.ts"), options);
    await pml.initialize();
    wide = await medianTime(pml, [planOf(SIDE_BY_SIDE, (at) => task(at, { ms: WAIT_MS }))]);
    const call = { name: "call", arguments: { tool: "m:wait", arguments: { then: 1 } } };
    calls = await medianTime(pml, Array(CHAIN).fill(call));
    chain = await medianTime(pml, [
      planOf(CHAIN, (at) => task(at, { then: at === 0 ? 1 : { $ref: `t${at - 1}#/then` } })),
    ]);
  }
  await Deno.remove(folder, { recursive: true });
  return [{
    what: `plan of ${SIDE_BY_SIDE} independent tasks of ${WAIT_MS} ms`,
    value: wide,
    unit: "ms",
    wanted: { of: "figure", most: 300 },
    runs: ROUNDS,
  }, {
    what: `task of a plan, in a chain of ${CHAIN}, relative to one call after the other`,
    value: chain / CHAIN,
    unit: "ms",
    baseline: calls / CHAIN,
    runs: ROUNDS,
  }];
}

/** Returns the median time of requests that are sent one after the other. */
async function medianTime(pml: StdioProcess, requests: readonly unknown[]): Promise<number> {
  const times: number[] = [];
  let id = 1;
  for (let round = 0; round <= ROUNDS; round++) {
    const since = performance.now();
    for (const request of requests) await pml.request(id++, "tools/call", request);
    if (round > 0) times.push(performance.now() - since);
  }
  return median(times);
}

function planOf(count: number, make: (at: number) => unknown): unknown {
  const tasks = Array.from({ length: count }, (_, at) => make(at));
  return { name: "execute_workflow", arguments: { plan: { tasks } } };
}

function task(at: number, args: Readonly<Record<string, unknown>>): unknown {
  return { id: `t${at}`, tool: "m:wait", arguments: args };
}

if (import.meta.main) console.table(await benchPlans());
